// What the tests do with graphile-worker, on the database that the environment names:
//
//     worker.mjs migrate         makes its tables
//     worker.mjs add MAX QUEUE   adds a job with MAX attempts, and prints its id; QUEUE is
//                                its named queue, or "" for none
//     worker.mjs hang            runs a worker that claims jobs and ends none
//     worker.mjs finish          runs a worker that completes each job
//     worker.mjs fail            runs a worker that fails each job
//     worker.mjs reschedule ID   gives a dead job back, as operators do. It sets runAt, because
//                                the reaper has set run_at to infinity.
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'

const [verb, ...args] = process.argv.slice(2)
const pgPool = new pg.Pool()
pgPool.on('error', error => { throw error })
pgPool.on('connect', client => client.on('error', error => { throw error }))
const logger = new Logger(() => () => {})

const tasks = {
  hang: () => new Promise(() => setInterval(() => {}, 1000)),
  finish: async () => {},
  fail: async () => { throw new Error('no such order') }
}

if (tasks[verb]) {
  const runner = await run({
    pgPool, logger, noHandleSignals: true, concurrency: 1, pollInterval: 100, taskList: { order: tasks[verb] }
  })
  await runner.promise
} else {
  const utils = await makeWorkerUtils({ pgPool, logger })
  switch (verb) {
    case 'migrate':
      await utils.migrate()
      break
    case 'add': {
      const [maxAttempts, queueName] = args
      const job = await utils.addJob('order', {}, {
        maxAttempts: Number(maxAttempts), queueName: queueName || undefined
      })
      console.log(job.id)
      break
    }
    case 'reschedule':
      await utils.rescheduleJobs([args[0]], { runAt: new Date(), maxAttempts: 25 })
      break
  }
  await utils.release()
}
await pgPool.end()
