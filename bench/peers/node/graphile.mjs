import { Logger, makeWorkerUtils, run } from 'graphile-worker'

const logger = new Logger(() => () => {})
const preset = {
  worker: {
    connectionString: dsn,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger
  }
}
const utils = await makeWorkerUtils({ connectionString: dsn, logger })
await utils.migrate()

await serve({
  async fill (messages) {
    await utils.withPgClient((client) => client.query('TRUNCATE graphile_worker._private_jobs'))
    for (let left = messages; left > 0; left -= 1000) {
      await utils.addJobs(Array.from({ length: Math.min(left, 1000) }, () => ({ identifier: 'charge', payload: { text } })))
    }
  },
  async drain (messages) {
    const [performed, tick] = until(messages)
    const runner = await run({ preset, noHandleSignals: true, taskList: { charge: () => {} } })
    runner.events.on('job:complete', () => tick())
    await performed
    await runner.stop() // which completes the last batch
  }
})
