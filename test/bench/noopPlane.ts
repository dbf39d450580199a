// A control plane that does nothing but answer, as a process of its own: the pipe's benchmark measures us, not it.
// Offers come until as many runs were claimed as it was told to give. Prints its port; answers counts on /counts.

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

let left = 0;
let given = 0;
let finalized = 0;
let requests = 0;

const server = createServer((req, res) => {
  void drained(req).then(() => {
    const url = req.url ?? '';
    if (url === '/counts') return answer(200, { given, finalized, requests, left });
    if (url.startsWith('/give/')) {
      left = Number(url.slice('/give/'.length));
      finalized = 0;
      requests = 0;
      return answer(200, {});
    }
    requests += 1;
    if (url === '/noop') return answer(204);
    if (url === '/runner/v1/pool/poll') return poll();
    if (url.endsWith('/claim') && url.startsWith('/runner/v1/pool/')) return claim(url);
    if (url === '/runner/v1/pool/heartbeat')
      return answer(200, { lease_expires_at: Date.now() + 300_000, action: 'continue' });
    if (url.endsWith('/claim')) return runClaim(url);
    if (url.endsWith('/renew')) return answer(200, { leaseUntil: Date.now() + 300_000 });
    if (url.endsWith('/cancel')) return answer(200, { cancelRequested: false });
    if (url.endsWith('/credit')) return answer(200, { funded: true });
    if (url.endsWith('/finalize')) finalized += 1;
    return answer(204);

    function poll(): void {
      if (left > 0) {
        const id = `bench-${(given += 1)}`;
        left -= 1;
        return answer(200, {
          assignment: {
            assignment_id: `as-${id}`,
            run_id: id,
            org_id: 'org',
            runs_on: { kind: 'self-hosted', pool: 'default' },
            queued_at: Date.now(),
          },
        });
      }
      setTimeout(() => answer(200, { assignment: null }), 1_000);
    }

    function claim(path: string): void {
      const id = path.split('/').at(-2)?.replace(/^as-/, '') ?? '';
      answer(200, {
        lease_id: `lease-${id}`,
        run_id: id,
        workflow_id: 'wf',
        environment_id: null,
        workspace_key: null,
        lease_expires_at: Date.now() + 300_000,
        control_plane: { base_url: base(), run_token: `rt-${id}`, api_token: `at-${id}` },
        env: {},
        byo_providers: [],
      });
    }

    function runClaim(path: string): void {
      const id = path.split('/').at(-2) ?? '';
      answer(201, {
        run: {
          id,
          orgId: 'org',
          workflowId: 'wf',
          workflowVersionId: 'v1',
          environmentId: null,
          attempt: 1,
          actor: { type: 'cron', rule: 'bench' },
          triggerKind: 'manual',
          input: null,
          createdAt: Date.now(),
        },
        leaseUntil: Date.now() + 300_000,
        lastEventCursor: 0,
      });
    }
  });

  function answer(status: number, value?: unknown): void {
    const payload = value === undefined ? '' : JSON.stringify(value);
    res.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(payload),
    });
    res.end(payload);
  }
});

function base(): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function drained(req: IncomingMessage): Promise<void> {
  await once(req.resume(), 'end');
}

server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.stdout.write(`${base()}\n`));
process.on('disconnect', () => process.exit(0));
