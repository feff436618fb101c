import express from 'express'
import { health, ROUTE, say } from './health.mjs'

const app = express()
app.get(ROUTE, (_, response) => response.json(health()))
const server = app.listen(0, '127.0.0.1', () => say(server.address().port))
