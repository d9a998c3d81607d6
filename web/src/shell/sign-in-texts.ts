import { defineTexts } from '../i18n/i18n.ts';

export const useSignInTexts = defineTexts(
  'sign-in',
  {
    title: 'Sign in',
    at: 'Sign in with {{label}}',
    clientId: 'Client id',
    secret: 'Secret',
    secretHint: 'Of a superuser: the settings SUPERUSER_CLIENT_ID and SUPERUSER_SECRET.',
    submit: 'Sign in',
    wrong: 'No superuser has this client id and this secret.',
    throttled: 'Too many attempts. Wait a minute, then try again.',
    overTitle: 'Your session has ended',
    overDetail: 'Sign in again to go on. Your input is still here.',
    newTab: 'The provider opens in a new tab; this page goes on by itself when you are back.',
    done: 'You are signed in',
    doneDetail: 'You can close this tab: the other one goes on.',
    toConsole: 'To the console',
    failed: 'You are not signed in',
    'provider-unavailable':
      'The provider does not answer as it should. Try again in a moment; if it lasts, an administrator finds the cause in the log under sign-in.failed.',
    denied: 'The provider did not let you in.',
    'begin-again': 'This attempt is too old, was used before, or began in another browser. Sign in again.',
    'no-role':
      'The provider knows you, but has given you no role for Heraut. Ask an administrator for one, then sign in again.',
    'ticket-refused':
      'This link was used before, is older than five minutes, or was not opened on the machine that Heraut runs on. Make a new one. Behind a published port (Docker Compose) no link works: sign in as the superuser, or as docs/running.md says under Users.',
    unavailable: 'The database is out of reach. Try again in a moment.',
    other: 'Signing in did not work. Try again.',
    everybody: 'End all sessions …',
    everybodyTitle: 'End the sessions of all users?',
    everybodyDetail:
      'Everybody who is signed in to the console, you too, has to sign in again. Deliveries are not affected.',
    everybodyAction: 'End all sessions',
    notSignedOut: 'You are not signed out',
  },
  {
    title: 'Aanmelden',
    at: 'Aanmelden met {{label}}',
    clientId: 'Client-id',
    secret: 'Geheim',
    secretHint: 'Van een superuser: de instellingen SUPERUSER_CLIENT_ID en SUPERUSER_SECRET.',
    submit: 'Aanmelden',
    wrong: 'Geen superuser heeft dit client-id met dit geheim.',
    throttled: 'Te veel pogingen. Wacht een minuut en probeer het opnieuw.',
    overTitle: 'Uw sessie is afgelopen',
    overDetail: 'Meld u opnieuw aan om verder te gaan. Uw invoer staat er nog.',
    newTab: 'De aanmeldpagina opent in een nieuw tabblad; deze pagina gaat vanzelf verder als u terug bent.',
    done: 'U bent aangemeld',
    doneDetail: 'U kunt dit tabblad sluiten: het andere gaat verder.',
    toConsole: 'Naar de console',
    failed: 'U bent niet aangemeld',
    'provider-unavailable':
      'De aanmelddienst antwoordt niet zoals het hoort. Probeer het zo dadelijk opnieuw; blijft het zo, dan vindt een beheerder de oorzaak in het logboek onder sign-in.failed.',
    denied: 'De aanmelddienst liet u niet binnen.',
    'begin-again': 'Deze poging is te oud, al gebruikt, of begon in een andere browser. Meld u opnieuw aan.',
    'no-role':
      'De aanmelddienst kent u, maar gaf u geen rol in Heraut. Vraag een beheerder om een rol en meld u daarna opnieuw aan.',
    'ticket-refused':
      'Deze link is al gebruikt, ouder dan vijf minuten, of niet geopend op de machine waarop Heraut draait. Maak een nieuwe. Achter een gepubliceerde poort (Docker Compose) werkt geen link: meld u aan als superuser, of zoals docs/running.md onder Users zegt.',
    unavailable: 'De database is onbereikbaar. Probeer het zo dadelijk opnieuw.',
    other: 'Het aanmelden lukte niet. Probeer het opnieuw.',
    everybody: 'Alle sessies beëindigen …',
    everybodyTitle: 'De sessies van alle gebruikers beëindigen?',
    everybodyDetail:
      'Iedereen die in de console is aangemeld, ook u, moet zich opnieuw aanmelden. Afleveringen merken er niets van.',
    everybodyAction: 'Alle sessies beëindigen',
    notSignedOut: 'U bent niet afgemeld',
  },
);
