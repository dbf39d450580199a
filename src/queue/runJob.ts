// A job of the runs queue: ids and times, nothing large and nothing secret (P7).

import { z } from 'zod';

export const JOB_NAME = 'run';

/** An id from the wire is refused where it comes in, at 200 bytes; this keeps the whole job under 2 KB. */
const shortText = z.string().min(1).max(256);

export const runJob = z.object({
  v: z.literal(1),
  runId: shortText,
  leaseId: shortText,
  assignmentId: shortText,
  workflowId: shortText,
  pool: shortText,
  claimedAtMs: z.number(),
  queuedAtMs: z.number(),
});

export type RunJob = Readonly<z.infer<typeof runJob>>;
