import { Anchor, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { UrlState } from './url-state.ts';

interface Target {
  to: string;
  params?: Record<string, string>;
  search?: UrlState;
}

/** Where a subject of the audit log or of an alert is shown: `channel/<uuid>`, `endpoint/<address>`, `retry-policy`. */
function targetOf(subject: string): Target | undefined {
  const slash = subject.indexOf('/');
  const [kind, id] = slash === -1 ? [subject, ''] : [subject.slice(0, slash), subject.slice(slash + 1)];
  switch (kind) {
    case 'channel':
      return { to: '/channels/$id', params: { id } };
    case 'subscription':
      return { to: '/subscriptions/$id', params: { id } };
    case 'replay':
      return { to: '/replays/$id', params: { id } };
    case 'delivery':
      return { to: '/notifications/$id', params: { id: id.split('/', 1)[0]! } };
    case 'notification':
      return { to: '/notifications/$id', params: { id } };
    case 'application':
      return { to: '/applications', search: { application: id } };
    case 'endpoint':
      return { to: '/endpoints', search: { q: id } };
    case 'alert-rules':
    case 'alerts':
      return { to: '/alerts', search: { tab: 'rules' } };
    case 'retry-policy':
      return { to: '/settings', search: { tab: 'retry-policy' } };
    case 'erasure':
      return { to: '/settings', search: { tab: 'retention' } };
    case 'role':
      return { to: '/settings', search: { tab: 'installation' } };
    default:
      return undefined;
  }
}

/** @param name in the place of the id, where it is known */
export function SubjectLink({ subject, name }: { subject: string; name?: string | undefined }) {
  const shown = name ?? subject;
  const target = targetOf(subject);
  if (!target)
    return (
      <Text span inherit>
        {shown}
      </Text>
    );
  return (
    <Anchor component={Link} {...(target as { to: '.' })} inherit title={subject}>
      {shown}
    </Anchor>
  );
}
