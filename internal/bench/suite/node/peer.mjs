// What a peer from the npm registry does with the jobs of dead workers:
//
//     node peer.mjs pg-boss prepare URL    makes its tables
//     node peer.mjs pg-boss reap URL       reaps, and prints the seconds it took
//
// and the same for graphile-worker. The clock runs while the peer works, on a
// connection that is open and warm. A second figure is the seconds that it took to
// reap and to do what else it does in the same go.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import pg from 'pg'

const require = createRequire(import.meta.url)
const quiet = { error () {}, warn () {}, info () {}, debug () {} }

function stopwatch () {
  const began = process.hrtime.bigint()
  return () => console.log(Number(process.hrtime.bigint() - began) / 1e9)
}

const boss = {
  async start (url) {
    const PgBoss = require('pg-boss')
    const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false, max: 1 })
    boss.on('error', error => { throw error })
    return boss.start()
  },

  async prepare (url) {
    const started = await this.start(url)
    await started.createQueue('dead', { name: 'dead' })
    await started.createQueue('bench', { name: 'bench', retryLimit: 4, retryDelay: 10, retryBackoff: true, deadLetter: 'dead' })
    await started.stop({ graceful: false })
  },

  // What its supervision does.
  async reap (url) {
    const started = await this.start(url)
    await started.countStates()
    const tell = stopwatch()
    await started.expire()
    tell()
    await started.archive()
    await started.drop()
    tell()
    await started.stop({ graceful: false })
  }
}

const worker = {
  async prepare (url) {
    const { runMigrations, Logger } = await import('graphile-worker')
    await runMigrations({ connectionString: url, logger: new Logger(() => () => {}) })
  },

  // What its runner does now and then. The package does not export it.
  async reap (url) {
    const folder = join(require.resolve('graphile-worker'), '..')
    const { resetLockedAt } = require(join(folder, 'sql', 'resetLockedAt.js'))
    const client = new pg.Client(url)
    await client.connect()
    await client.query('select count(*) from graphile_worker._private_jobs')
    const options = {
      workerSchema: 'graphile_worker',
      escapedWorkerSchema: '"graphile_worker"',
      resolvedPreset: { worker: { preparedStatements: true, useNodeTime: false } },
      logger: quiet
    }
    const tell = stopwatch()
    await resetLockedAt(options, { withRetries: callback => callback(client) })
    tell()
    await client.end()
  }
}

const [name, task, url] = process.argv.slice(2)
await { 'pg-boss': boss, 'graphile-worker': worker }[name][task](url)
