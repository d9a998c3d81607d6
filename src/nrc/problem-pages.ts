import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { NotFoundProblem } from '../infra/http/problem.js';
import { isProblemClass, problemClasses, type ProblemClass } from './problem-classes.js';

export const problemPage = (name: string): string => `/ref/fouten/${name}/`;

/** The pages that the `type` of a problem links to. */
export function serveProblemPages(app: NestFastifyApplication): void {
  app
    .getHttpAdapter()
    .getInstance()
    .get<{ Params: { class: string } }>(problemPage(':class'), (request, reply) => {
      const name = request.params.class;
      if (!isProblemClass(name)) throw new NotFoundProblem(`There is no class of problems with the name ${name}.`);
      return reply.type('text/html; charset=utf-8').send(page(name));
    });
}

const page = (name: ProblemClass): string => {
  const { status, title, explanation, codes } = problemClasses[name];
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${name}</title></head>
<body>
<h1>${name}</h1>
<p><strong>${status}</strong> ${title}</p>
<p>${explanation}</p>
${codes.length === 0 ? '' : `<p>Codes: ${codes.map((code) => `<code>${code}</code>`).join(', ')}</p>`}
</body>
</html>
`;
};
