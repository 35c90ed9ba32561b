import { PgBoss } from 'pg-boss'

const queue = 'charges'
const boss = new PgBoss({ connectionString: dsn, supervise: false, schedule: false })
boss.on('error', (err) => console.error(err))
await boss.start()
await boss.createQueue(queue)

await serve({
  async fill (messages) {
    await boss.getDb().executeSql('TRUNCATE pgboss.job')
    for (let left = messages; left > 0; left -= 5000) {
      await boss.insert(queue, Array.from({ length: Math.min(left, 5000) }, () => ({ data: { text } })))
    }
  },
  async drain (messages) {
    const [performed, tick] = until(messages)
    await boss.work(queue, { batchSize: 5000, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }, async (jobs) => tick(jobs.length))
    await performed
    await boss.offWork(queue, { wait: true }) // once the last batch is completed
  }
})
