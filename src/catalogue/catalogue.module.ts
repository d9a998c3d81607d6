import { Global, Module } from '@nestjs/common';
import { Catalogue } from './catalogue.service.js';
import { KeptAnswers } from './kept-answers.service.js';

@Global()
@Module({ providers: [Catalogue, KeptAnswers], exports: [Catalogue, KeptAnswers] })
export class CatalogueModule {}
