// What the tests do with pg-boss, on the database that the environment names:
//
//     worker.mjs migrate     makes its tables, and a queue, in a partition of its own, with a
//                            dead-letter queue
//     worker.mjs add LIMIT   adds a job with LIMIT retries, and prints its id
//     worker.mjs hang        runs a worker that claims jobs and ends none
//     worker.mjs finish      runs a worker that completes each job
//     worker.mjs fail        runs a worker that fails each job
//     worker.mjs find ID     prints a job as pg-boss's findJobs returns it
//     worker.mjs retry ID    gives a dead job back, as operators do
//     worker.mjs supervise   fails expired jobs once, as the supervisor does
//
// No supervisor runs in the background: in these tests the reaper does its work.
import { PgBoss } from 'pg-boss'

const [verb, ...args] = process.argv.slice(2)
const { PGHOST: host, PGPORT: port, PGUSER: user, PGPASSWORD: password, PGDATABASE: database } = process.env
const boss = new PgBoss({
  host, port: Number(port), user, password, database,
  max: 2,
  supervise: verb === 'supervise',
  schedule: false,
  migrate: verb === 'migrate'
})
boss.on('error', error => { throw error })
await boss.start()

const handlers = {
  hang: () => new Promise(() => {}),
  finish: async () => {},
  fail: async () => { throw new Error('no such order') }
}

if (handlers[verb]) {
  await boss.work('order', { pollingIntervalSeconds: 0.5 }, handlers[verb])
} else {
  switch (verb) {
    case 'migrate':
      await boss.createQueue('order-dead')
      await boss.createQueue('order', { deadLetter: 'order-dead', partition: true })
      break
    case 'add':
      console.log(await boss.send('order', { number: 7 }, { retryLimit: Number(args[0]), retryDelay: 0 }))
      break
    case 'find':
      console.log(JSON.stringify(await boss.findJobs('order', { id: args[0] })))
      break
    case 'retry':
      await boss.retry('order', args[0])
      break
    case 'supervise':
      await boss.supervise('order')
      break
  }
  await boss.stop({ graceful: false })
}
