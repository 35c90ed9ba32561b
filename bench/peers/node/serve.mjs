// What the programs of this folder begin with: verbs with numbers come in by lines, each is answered by a line "= number".
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'

const serve = async (verbs) => {
  console.log('= 0') // ready
  const lines = createInterface({ input: process.stdin })
  lines.on('close', () => process.exit(0)) // also while a verb runs: whoever asked for it is gone
  for await (const line of lines) {
    const [verb, ...numbers] = line.split(' ')
    console.log(`= ${(await verbs[verb](...numbers.map(Number))) ?? 0}`)
  }
}

// reached waits for a condition.
const reached = async (condition) => {
  while (!condition()) await setTimeout(2)
}

// produce has producers run transactions one after the other, and says how many those were.
const produce = async (producers, milliseconds, insert) => {
  const end = performance.now() + milliseconds
  let transactions = 0
  await Promise.all(Array.from({ length: producers }, async () => {
    const client = new pg.Client(dsn)
    await client.connect()
    for (; performance.now() < end; transactions++) {
      await client.query('BEGIN')
      await insert(client)
      await client.query('COMMIT')
    }
    await client.end()
  }))
  return transactions
}

const dsn = process.env.DATABASE_URL
const text = 'x'.repeat(200 - '{"text":""}'.length)
