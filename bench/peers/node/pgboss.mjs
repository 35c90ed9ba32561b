import { PgBoss } from 'pg-boss'

const queue = 'charges'
const boss = new PgBoss({ connectionString: dsn, supervise: false, schedule: false })
boss.on('error', (err) => console.error(err))
await boss.start()
await boss.createQueue(queue)

// perform runs a worker while something is done.
const perform = async (during) => {
  let jobs = 0
  await boss.work(queue, { batchSize: 5000, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }, async (batch) => { jobs += batch.length })
  const result = await during(() => jobs)
  await boss.offWork(queue, { wait: true }) // once the last batch is completed
  return result
}

await serve({
  async fill (messages) {
    await boss.getDb().executeSql('TRUNCATE pgboss.job')
    for (let left = messages; left > 0; left -= 5000) {
      await boss.insert(queue, Array.from({ length: Math.min(left, 5000) }, () => ({ data: { text } })))
    }
  },
  async drain (messages) {
    await perform((performed) => reached(() => performed() >= messages))
  },
  async stream (producers, milliseconds) {
    return perform(async (performed) => {
      const messages = await produce(producers, milliseconds, (client) =>
        boss.send(queue, { text }, { db: { executeSql: (sql, values) => client.query(sql, values) } }))
      await reached(() => performed() >= messages)
      return messages
    })
  }
})
