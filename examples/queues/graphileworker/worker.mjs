// graphile-worker as the tests need it, on the database that the environment names:
//
//     worker.mjs migrate         makes its tables
//     worker.mjs add MAX QUEUE   adds a job that may be tried MAX times, and prints its id;
//                                QUEUE is its named queue, "" none
//     worker.mjs hang            works on jobs until it is killed, and ends none
//     worker.mjs finish          ends each of them well
//     worker.mjs fail            ends each of them with an error
//     worker.mjs reschedule ID   gives a dead job back, as its operators do: with a time, since
//                                the reaper has scheduled it for one that never comes
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
