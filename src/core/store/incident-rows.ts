import type {
  Announcement,
  MessageKind,
  MessageRecord,
  Silence,
  StoredIncident,
} from '../incidents/incident.ts'
import { storableText } from './rows.ts'

/** The table `incident` as every SQL store has it. */
export interface IncidentRow {
  readonly id: string
  readonly cause: string
  readonly service: string
  readonly reason: string | null
  /** JSON. */
  readonly affected: string
  readonly opened_at: number
  readonly seen_at: number
  readonly closed_at: number | null
  readonly acknowledged_at: number | null
  readonly acknowledged_by: string | null
}

export interface AlertRow {
  readonly incident: string
  readonly kind: string
  readonly channel: string
  readonly outcome: MessageRecord['outcome']
  readonly attempts: number
  readonly at: number
  readonly reason: string | null
}

export interface SilenceRow {
  readonly from_at: number
  readonly until_at: number
  readonly reason: string
  readonly who: string
}

export interface AnnouncementRow {
  readonly id: string
  readonly text: string
  readonly from_at: number
  readonly until_at: number | null
  readonly who: string
}

/** The values of an incident, in the order of its columns. */
export function incidentRow(incident: StoredIncident): IncidentRow {
  return {
    id: incident.id,
    cause: incident.cause,
    service: incident.service,
    reason: storedReason(incident.reason),
    affected: JSON.stringify(incident.affected),
    opened_at: incident.openedAt,
    seen_at: incident.seenAt,
    closed_at: incident.closedAt ?? null,
    acknowledged_at: incident.acknowledgedAt ?? null,
    acknowledged_by: incident.acknowledgedBy ?? null,
  }
}

export function storedReason(reason: string | undefined): string | null {
  return reason === undefined ? null : storableText(reason)
}

export function incidentOf(row: IncidentRow): StoredIncident {
  return {
    id: row.id,
    cause: row.cause,
    service: row.service,
    reason: row.reason ?? undefined,
    // Only `incidentRow` writes the column.
    affected: JSON.parse(row.affected) as string[],
    openedAt: row.opened_at,
    seenAt: row.seen_at,
    closedAt: row.closed_at ?? undefined,
    acknowledgedAt: row.acknowledged_at ?? undefined,
    acknowledgedBy: row.acknowledged_by ?? undefined,
  }
}

export function messageOf({ kind, reason, ...row }: AlertRow): MessageRecord {
  // Only kinds of ours are written.
  return { ...row, kind: kind as MessageKind, reason: reason ?? undefined }
}

export function silenceOf(row: SilenceRow): Silence {
  return { from: row.from_at, until: row.until_at, reason: row.reason, by: row.who }
}

export function announcementOf({ id, text, from_at, until_at, who }: AnnouncementRow): Announcement {
  return { id, text, from: from_at, until: until_at ?? undefined, by: who }
}
