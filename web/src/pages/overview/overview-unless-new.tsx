import { useQuery } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import { answerOf, api } from '../../api/client.ts';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { OverviewPage } from './overview-page.tsx';

/** Once something was accepted, it was: not asked again until the console is loaded anew. */
let hasAccepted = false;

/**
 * An overview of nothing helps nobody: until something was accepted it leads to the first steps, unless the address
 * says not to.
 */
export function OverviewUnlessNew() {
  const [url] = useUrlState();
  const isAsked = !hasAccepted && oneOf(url['welcome']) !== 'no';
  const { data: isNew, failureCount } = useQuery({
    queryKey: ['is-new'],
    enabled: isAsked,
    // Asked each time that the page is opened: an answer from before the first notification would lead away from it.
    gcTime: 0,
    queryFn: async ({ signal }) => {
      const { notifications } = await answerOf(
        api.GET('/admin/v1/notifications', { params: { query: { limit: 1 } }, signal }),
      );
      hasAccepted = notifications.length > 0;
      return !hasAccepted;
    },
  });
  if (isAsked && isNew) return <Navigate to="/welcome" replace />;
  return isAsked && isNew === undefined && failureCount === 0 ? null : <OverviewPage />;
}
