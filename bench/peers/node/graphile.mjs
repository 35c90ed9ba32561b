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

// perform runs a worker while something is done.
const perform = async (during) => {
  let jobs = 0
  const runner = await run({ preset, noHandleSignals: true, taskList: { charge: () => {} } })
  runner.events.on('job:complete', () => jobs++)
  const result = await during(() => jobs)
  await runner.stop() // which completes the last batch
  return result
}

await serve({
  async fill (messages) {
    await utils.withPgClient((client) => client.query('TRUNCATE graphile_worker._private_jobs'))
    for (let left = messages; left > 0; left -= 1000) {
      await utils.addJobs(Array.from({ length: Math.min(left, 1000) }, () => ({ identifier: 'charge', payload: { text } })))
    }
  },
  async drain (messages) {
    await perform((performed) => reached(() => performed() >= messages))
  },
  async stream (producers, milliseconds) {
    const insert = { name: 'add', text: 'SELECT graphile_worker.add_job($1, $2::json)', values: ['charge', JSON.stringify({ text })] }
    return perform(async (performed) => {
      const messages = await produce(producers, milliseconds, (client) => client.query(insert))
      await reached(() => performed() >= messages)
      return messages
    })
  }
})
