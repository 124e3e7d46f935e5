// Every view: its name in the address, its title, what opens it, and what its menu entry warns of.

import { breakers } from "./breakers.js";
import { feed } from "./feed.js";
import { incidents } from "./incidents.js";
import { job } from "./job.js";
import { jobs } from "./jobs.js";
import { overview } from "./overview.js";
import { quotas } from "./quotas.js";
import { run, runs } from "./runs.js";
import { sources } from "./sources.js";
import { workers } from "./workers.js";

const some = (n, words, kind = "bad") => (n ? { n, words, kind } : null);

export const VIEWS = [
  { name: "overview", title: "Overview", open: overview },
  { name: "jobs", title: "Jobs", open: jobs, child: "job", sign: (figures) => some(figures.counts.queued + figures.counts.pending + figures.counts.leased, "not ended", "plain") },
  { name: "job", title: "Job", open: job, hidden: true },
  { name: "sources", title: "Sources and hosts", open: sources, sign: (figures) => some(figures.throttles, "held back", "mild") },
  { name: "workers", title: "Workers", open: workers },
  { name: "quotas", title: "Quotas", open: quotas },
  { name: "breakers", title: "Breakers", open: breakers, sign: (figures) => some(figures.openBreakers.length, "not closed") },
  { name: "incidents", title: "Incidents and audit", open: incidents, sign: (figures) => some(figures.openIncidents, "not resolved") },
  { name: "runs", title: "Pack-runs", open: runs, child: "run" },
  { name: "run", title: "Pack-run", open: run, hidden: true },
  { name: "feed", title: "Live feed", open: feed },
];
