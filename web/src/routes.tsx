import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
  type ErrorComponentProps,
} from '@tanstack/react-router';
import { consoleRoot } from './api/client.ts';
import { loadPart } from './api/load-part.ts';
import { ProblemAlert } from './parts/problem-alert.tsx';
import { parseSearch, stringifySearch } from './parts/url-state.ts';
import { NotFound } from './shell/not-found.tsx';
import { Shell } from './shell/shell.tsx';

const Broken = ({ error, reset }: ErrorComponentProps) => <ProblemAlert error={error} onRetry={reset} />;

const root = createRootRoute({ errorComponent: Broken });

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  component: lazyRouteComponent(() => loadPart(() => import('./pages/sign-in/sign-in-page.tsx')), 'SignInPage'),
});

const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell });

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/overview', replace: true });
  },
});

/** Any other address: a page within the frame as well. */
const noPage = createRoute({ getParentRoute: () => shell, path: '/$', component: NotFound });

/** Each page comes with its own code when it is first opened. */
const pages = [
  page('/overview', () => import('./pages/overview/overview-unless-new.tsx'), 'OverviewUnlessNew'),
  page('/welcome', () => import('./pages/welcome/welcome-page.tsx'), 'WelcomePage'),
  page('/endpoints', () => import('./pages/endpoints/endpoints-page.tsx'), 'EndpointsPage'),
  page('/notifications', () => import('./pages/notifications/notifications-page.tsx'), 'NotificationsPage'),
  page('/notifications/$id', () => import('./pages/notification/notification-page.tsx'), 'NotificationPage'),
  page('/tail', () => import('./pages/tail/tail-page.tsx'), 'TailPage'),
  page('/subscriptions', () => import('./pages/subscriptions/subscriptions-page.tsx'), 'SubscriptionsPage'),
  page('/subscriptions/$id', () => import('./pages/subscription/subscription-page.tsx'), 'SubscriptionPage'),
  page('/dead-letters', () => import('./pages/dead-letters/dead-letters-page.tsx'), 'DeadLettersPage'),
  page('/replays', () => import('./pages/replays/replays-page.tsx'), 'ReplaysPage'),
  page('/replays/new', () => import('./pages/new-replay/new-replay-page.tsx'), 'NewReplayPage'),
  page('/replays/$id', () => import('./pages/replay/replay-page.tsx'), 'ReplayPage'),
  page('/channels', () => import('./pages/channels/channels-page.tsx'), 'ChannelsPage'),
  page('/channels/$id', () => import('./pages/channel/channel-page.tsx'), 'ChannelPage'),
  page('/applications', () => import('./pages/applications/applications-page.tsx'), 'ApplicationsPage'),
  page('/alerts', () => import('./pages/alerts/alerts-page.tsx'), 'AlertsPage'),
  page('/audit', () => import('./pages/audit/audit-page.tsx'), 'AuditPage'),
  page('/settings', () => import('./pages/settings/settings-page.tsx'), 'SettingsPage'),
  page('/publish', () => import('./pages/publish/publish-page.tsx'), 'PublishPage'),
];

function page<P extends string, M extends Record<K, () => React.ReactNode>, K extends keyof M & string>(
  path: P,
  load: () => Promise<M>,
  name: K,
) {
  return createRoute({
    getParentRoute: () => shell,
    path,
    // Another channel is another page: nothing that was typed for the one before may stay.
    remountDeps: ({ params }) => params,
    component: lazyRouteComponent(() => loadPart(load as () => Promise<Record<string, () => React.ReactNode>>), name),
    errorComponent: Broken,
  });
}

export const router = createRouter({
  routeTree: root.addChildren([home, signIn, shell.addChildren([...pages, noPage])]),
  basepath: consoleRoot.pathname,
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  scrollRestoration: true,
});
