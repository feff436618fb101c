import { TABLES } from '../../src/core/store/migrations.ts'

/** Dumps of a database, each in a schema of its own, and their restore in its place. `sql` runs statements on one connection. */
export const dumpsOf = (sql: (...statements: string[]) => Promise<unknown>) => ({
  dump: (schema: string) =>
    sql(
      `CREATE SCHEMA ${schema}`,
      ...TABLES.map((table) => `CREATE TABLE ${schema}.${table} AS TABLE platformctl.${table}`),
    ),
  restore: (schema: string) =>
    sql(
      'ALTER TABLE platformctl.audit DISABLE TRIGGER ALL',
      ...[...TABLES].reverse().map((table) => `DELETE FROM platformctl.${table}`),
      'ALTER TABLE platformctl.audit ENABLE TRIGGER ALL',
      ...TABLES.map((table) => `INSERT INTO platformctl.${table} SELECT * FROM ${schema}.${table}`),
    ),
})
