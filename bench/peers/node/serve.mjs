// What the programs of this folder begin with: verbs with a number come in by lines, each is answered by a line "= number".
import { createInterface } from 'node:readline'

const serve = async (verbs) => {
  console.log('= 0') // ready
  for await (const line of createInterface({ input: process.stdin })) {
    const [verb, number] = line.split(' ')
    console.log(`= ${(await verbs[verb](Number(number))) ?? 0}`)
  }
  process.exit(0)
}

// until gives a promise and the function that fulfils it at its n-th call.
const until = (n) => {
  let tick
  const done = new Promise((resolve) => {
    tick = (by = 1) => { if ((n -= by) <= 0) resolve() }
  })
  return [done, tick]
}

const dsn = process.env.DATABASE_URL
const text = 'x'.repeat(200 - '{"text":""}'.length)
