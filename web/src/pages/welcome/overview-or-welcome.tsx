import { useQuery } from '@tanstack/react-query';
import { lazy } from 'react';
import { loadPart } from '../../api/load-part.ts';
import { answerOf, api } from '../../api/client.ts';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { OverviewPage } from '../overview/overview-page.tsx';

const WelcomePage = lazy(() =>
  loadPart(() => import('./welcome-page.tsx')).then((module) => ({ default: module.WelcomePage })),
);

/** Once something was accepted, it was: not asked again until the console is loaded anew. */
let hasAccepted = false;

/** An overview of nothing helps nobody: until something was accepted the first steps stand in its place, unless the address says not to. */
export function OverviewOrWelcome() {
  const [url] = useUrlState();
  const isAsked = !hasAccepted && oneOf(url['welcome']) !== 'no';
  const { data: isNew, failureCount } = useQuery({
    queryKey: ['is-new'],
    enabled: isAsked,
    // Asked when the page is opened, and not again while it is open: who is in the middle of the steps stays there.
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const { notifications } = await answerOf(
        api.GET('/admin/v1/notifications', { params: { query: { limit: 1 } }, signal }),
      );
      hasAccepted = notifications.length > 0;
      return !hasAccepted;
    },
  });
  if (isAsked && isNew) return <WelcomePage />;
  return isAsked && isNew === undefined && failureCount === 0 ? null : <OverviewPage />;
}
