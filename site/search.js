// Users paste printed messages into the search. A query as long as a message is reduced to its
// significant words, of which the rule before or after the message (`min_consumer: …`) counts most.
// So the notation of the search (`field:`, `+`, `"…"`) does not make the query invalid, lists of
// names and paths do not outweigh the other words, and "not" does not find every name that begins
// with it. Shorter queries are unchanged.
const post = Worker.prototype.postMessage;
const LONG = 6;
const MOST = 14;
const FEW = 4;
const FREQUENT = new Set(
  "also and are because but file files for from has have into its not only such than that the there they this was which will with".split(" "),
);
const NAME = /\w_\w/;

function words(text) {
  return text
    .split(/[\s,:;!?()\[\]{}"`'=…|<>/*~^+-]+|\.(?!\d)/)
    .filter(word => word && word.length > 2 && !FREQUENT.has(word.toLowerCase()));
}

function telling(query) {
  const rule = (query.match(/^(\w+): /) || query.match(/\[(\w+)\]$/) || [])[1];
  let kept = words(query.replace(/\S*\/\S*/g, " "));
  if (kept.filter(word => NAME.test(word)).length > FEW) kept = kept.filter(word => !NAME.test(word));
  // The search ignores case: `--log-format <FORMAT>` has one word twice.
  const lower = new Set(kept.map(word => word.toLowerCase()));
  const found = [...lower].filter(word => word !== rule?.toLowerCase()).slice(0, MOST);
  return (rule ? [`${rule}^40`, ...found] : found).join(" ");
}

Worker.prototype.postMessage = function (message, ...rest) {
  if (message && message.type === 2 && typeof message.data === "string") {
    const query = message.data.trim();
    const data = query.split(/\s+/).length < LONG ? query.replace(/:(?=\s|$)/g, " ") : telling(query);
    return post.call(this, { ...message, data: data || query }, ...rest);
  }
  return post.call(this, message, ...rest);
};
