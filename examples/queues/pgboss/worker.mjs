// pg-boss as the tests need it, on the database that the environment names:
//
//     worker.mjs migrate     makes its tables, and a queue, in a partition of its own, with a
//                            dead-letter queue
//     worker.mjs add LIMIT   adds a job that may be tried again LIMIT times, and prints its id
//     worker.mjs hang        works on jobs until it is killed, and ends none
//     worker.mjs finish      ends each of them well
//     worker.mjs fail        ends each of them with an error
//     worker.mjs find ID     prints what pg-boss says of a job
//     worker.mjs retry ID    gives a dead job back, as its operators do
//     worker.mjs supervise   fails what has expired, as its supervisor does
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
