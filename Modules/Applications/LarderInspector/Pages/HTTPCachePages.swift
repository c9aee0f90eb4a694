#if Inspector
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import LarderHTTPCache

/// The pages about an HTTP cache.
extension InspectorPages {
  /// The number of responses that a page reads.
  private static var shownResponses: Int { 100 }

  /// The length of the largest body that is sent, in bytes, because it is collected in memory.
  private static var largestBody: Int64 { 32 << 20 }

  func httpCache(_ fields: FormFields) async throws -> Page {
    let (number, store, cache) = try httpCache(fields)
    let prefix = fields["url"] ?? ""
    let page = try await cache.inspector.responses(
      prefix: prefix, limit: Self.shownResponses, after: fields.key("after"))
    let rows = page.responses.map { response -> HTML in
      """
      <tr><th scope="row"><a href="\(urlAddress(number, response.url))">\(response.url)</a></th><td class="number">\(response.status)</td>
      <td>\(response.freshnessText)</td><td class="number">\(Readable.seconds(response.age))</td>
      <td class="number">\(Readable.size(response.footprint))</td></tr>
      """
    }
    let table: HTML =
      rows.isEmpty
      ? "<p class=\"empty\">No stored responses\(prefix.isEmpty ? "" : " for such URLs")\(page.next == nil ? "" : " in this part").</p>"
      : """
      <div class="table stacked"><table><thead><tr><th scope="col">URL</th><th scope="col" class="number">Status</th><th scope="col">Freshness</th>\
      <th scope="col" class="number">Age</th><th scope="col" class="number">In the store</th></tr></thead><tbody>\(rows)</tbody></table></div>
      """
    let damage: HTML? =
      page.damagedKeys.isEmpty
      ? nil
      : "<p class=\"problem\">\(Readable.count(page.damagedKeys.count)) records of this page cannot be read. To list the damage, use <code>larder http verify</code>.</p>"
    let next: HTML? = page.next.map { key in
      let address = Page.address("http", ["store": "\(number)", "url": prefix, "after": key.hexadecimal])
      return
        "<nav class=\"pages\" aria-label=\"Pages\"><a class=\"button\" data-key=\"n\" href=\"\(address)\">Next</a></nav>"
    }
    var removal: HTML?
    if allowsChanges(of: store) {
      removal =
        prefix.isEmpty
        ? removalForm(number, [("action", "removeResponses")], button: "Remove all responses")
        : removalForm(
          number, [("action", "removePrefix"), ("url", prefix)], button: "Remove responses with this prefix")
    }
    return Page(
      title: "HTTP cache", crumbs: crumbs(number, store),
      content: """
        <h1>HTTP cache of \(store.name)</h1>
        \(cache.cache.map { Self.statistics($0.statistics()) })
        <ul class="facts" data-counts="\(Page.address("usage", ["store": "\(number)"]))">
        <li><span class="term">Responses</span> <span data-count="responses">–</span></li>
        <li><span class="term">In the store</span> <span data-count="bytes">–</span></li>
        <li><span class="term">Bodies</span> <span data-count="bodies">–</span></li>
        <li><span class="term">Being stored</span> <span data-count="marks">–</span></li>
        <li><span class="term">Waiting for removal</span> <span data-count="retired">–</span></li>
        </ul>
        <form class="search" action="http" method="get" role="search">
        <input type="hidden" name="store" value="\(number)">
        <label>URL, or the beginning of URLs <input name="url" data-key="/" type="text" inputmode="url" autocomplete="off" spellcheck="false" value="\(prefix)"></label>
        <button>Show URLs</button>
        <button formaction="response">Explain this URL</button>
        </form>
        <p class="actions">\(removal)</p>
        \(damage)\(table)\(next)
        """,
      liveAddress: cache.cache.map { _ in Page.address("state", ["store": "\(number)"]) }, isReadAgain: false)
  }

  /// The page that says why a URL is or is not answered from the store, with its stored responses.
  func httpResponse(_ fields: FormFields) async throws -> Page {
    let (number, store, cache) = try httpCache(fields)
    guard let url = fields["url"], !url.isEmpty else { throw PageFailure(.badRequest, "give a URL") }
    let text = fields["fields"] ?? ""
    let decision = try await cache.inspector.decision(onURL: url, fields: Self.fields(text))
    let responses = try await cache.inspector.responses(to: url)
    let removal: HTML? =
      allowsChanges(of: store)
      ? removalForm(number, [("action", "removeURL"), ("url", url)], button: "Remove the responses for this URL") : nil
    let answer =
      decision.status.isHit
      ? "Answered from the store." : decision.status.forward == nil ? "Not answered." : "Forwarded to the origin."
    let sections = responses.map { Self.section(of: $0, bodyAddress: bodyAddress(number, $0)) }
    let list: HTML = responses.isEmpty ? "<p class=\"empty\">None.</p>" : "\(sections)"
    return Page(
      title: url,
      crumbs: crumbs(number, store)
        + [Page.Crumb(title: "HTTP cache", address: Page.address("http", ["store": "\(number)"]))],
      content: """
        <h1>\(url)</h1>
        <p class="decision" role="status"><b>\(answer)</b> \
        \(decision.explanation(known: responses.first))</p>
        <form class="editor" action="response" method="get">\(hidden([("store", "\(number)"), ("url", url)]))
        <label>Fields of the request, one on each line <textarea name="fields" rows="3" spellcheck="false" placeholder="Accept-Language: de">
        \(text)</textarea></label>
        <div class="actions"><button>Explain with these fields</button></div></form>
        <h2>Stored responses</h2>
        \(list)
        <p class="actions">\(removal)</p>
        """)
  }

  /// Returns the body of a stored response, with the same restrictions as a stored value.
  func httpBody(_ fields: FormFields) async throws -> Response {
    let (_, _, cache) = try httpCache(fields)
    guard let url = fields["url"], let key = try fields.key("key"),
      let response = try await cache.inspector.responses(to: url).first(where: { $0.key == key })
    else { throw PageFailure(.notFound, "the response is not stored any more") }
    guard response.isComplete, response.storedLength <= Self.largestBody else {
      throw PageFailure(
        .badRequest,
        "only a complete body of at most \(Readable.size(Self.largestBody)) is sent; use `larder http show --body`")
    }
    var bytes: [UInt8] = []
    try await cache.inspector.readBody(of: response) { bytes += $0 }
    return Response(stored: bytes, name: "body")
  }

  /// The sizes of an HTTP cache as JSON, for which the whole order of use is read.
  func usage(_ fields: FormFields) async throws -> Response {
    let (_, _, cache) = try httpCache(fields)
    let usage = try await cache.inspector.usage()
    return Response(
      json: """
        {"responses":"\(Readable.count(usage.responseCount))","bytes":"\(Readable.size(usage.bytes))",\
        "bodies":"\(Readable.count(usage.bodyCount)), \(Readable.size(usage.bodyBytes))",\
        "marks":"\(Readable.count(usage.markCount)), \(Readable.size(usage.markedBytes))",\
        "retired":"\(Readable.count(usage.retiredCount)), \(Readable.size(usage.retiredBytes))"}
        """)
  }

  /// Checks that responses can be removed, and returns the sentence that says how many they are.
  func countOfRemoved(_ responses: RemovedResponses, _ fields: FormFields) async throws -> HTML? {
    let (_, _, cache) = try httpCache(fields)
    switch responses {
    case .url(let url):
      let count = try await cache.inspector.responses(to: url).count
      return "<p>Number of stored responses: \(Readable.count(count)).</p>"
    case .prefix(let prefix):
      _ = try await cache.inspector.responses(prefix: prefix, limit: 1)
      return nil
    case .all: return nil
    }
  }

  func httpCache(_ fields: FormFields) throws -> (Int, InspectedStore, InspectedHTTPCache) {
    let (number, store) = try store(fields)
    guard let cache = store.httpCache else { throw PageFailure(.notFound, "this store is not one of an HTTP cache") }
    return (number, store, cache)
  }

  private func urlAddress(_ number: Int, _ url: String) -> String {
    Page.address("response", ["store": "\(number)", "url": url])
  }

  private func bodyAddress(_ number: Int, _ response: HTTPStoredResponse) -> String? {
    response.isComplete && response.storedLength <= Self.largestBody
      ? Page.address("body", ["store": "\(number)", "url": response.url, "key": response.key.hexadecimal]) : nil
  }

  private func removalForm(_ number: Int, _ fields: [(String, String)], button: String) -> HTML {
    "<form action=\"change\" method=\"post\">\(hidden([("store", "\(number)")] + fields))<button class=\"danger\">\(button)</button></form>"
  }

  /// The statistics of a cache of this program, whose hit ratio the script follows.
  private static func statistics(_ statistics: HTTPCacheStatistics) -> HTML {
    let facts = [
      ("Requests", statistics.requestCount), ("Validated", statistics.validationCount),
      ("Stale answers", statistics.staleCount), ("Shared fetches", statistics.collapsedCount),
      ("Stored", statistics.storedCount), ("Evicted", statistics.evictionCount),
      ("Errors of the store", statistics.storeFailureCount),
    ].map { term, count -> HTML in
      "<li><span class=\"term\">\(term)</span> <span>\(Readable.count(count))</span></li>"
    }
    return """
      <ul class="facts states">\(hitRatio(hits: statistics.hitCount, misses: statistics.requestCount - statistics.hitCount))</ul>
      <ul class="facts">\(facts)</ul>
      """
  }

  /// Returns fields, one on each line.
  ///
  /// - Throws: ``PageFailure`` if a line is not a field.
  private static func fields(_ text: String) throws -> HTTPFields {
    var fields = HTTPFields()
    for line in text.split(whereSeparator: \.isNewline) {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2, let name = HTTPField.Name(String(parts[0])) else {
        throw PageFailure(
          .badRequest, "a line is not a field; expected a name, a colon and a value, as in Accept: text/html")
      }
      fields.append(HTTPField(name: name, value: parts[1].trimmingCharacters(in: .whitespaces)))
    }
    return fields
  }

  private static func section(of response: HTTPStoredResponse, bodyAddress: String?) -> HTML {
    let length = response.length.map { Readable.size($0) } ?? "an unknown length"
    let selecting = response.selectingFields.filter { !$0.isEmpty }.map { fields -> HTML in
      let text = fields.map { field in
        "\(field.name): \(field.value.map { HTTPSecret.text(of: $0, in: field.name) } ?? "(none)")"
      }
      return "<li><span class=\"term\">Selected by</span> <span>\(text.joined(separator: "; "))</span></li>"
    }
    let partition: HTML? =
      response.partition.isEmpty
      ? nil
      : "<li><span class=\"term\">Partition</span> <span>\(Readable.size(response.partition.count)), hidden</span></li>"
    let rows = response.fields.map { field -> HTML in
      "<tr><th scope=\"row\">\(field.name.rawName)</th><td class=\"preview\">\(HTTPSecret.text(of: field.value, in: field.name.canonicalName))</td></tr>"
    }
    let body: HTML? = bodyAddress.map { "<p class=\"actions\"><a class=\"button\" href=\"\($0)\">Body</a></p>" }
    return """
      <section class="card response"><h3>Status \(response.status), \(response.freshnessText)</h3>
      <ul class="facts">
      <li><span class="term">Age</span> <span>\(Readable.seconds(response.age))</span></li>
      <li><span class="term">Freshness lifetime</span> <span>\(Readable.seconds(response.lifetime))</span></li>
      <li><span class="term">Received</span> <span>\(response.received.ISO8601Format())</span></li>
      <li><span class="term">Last used</span> <span>\(response.used.ISO8601Format())</span></li>
      <li><span class="term">Body</span> <span>\(Readable.size(response.storedLength)) of \(length)</span></li>
      <li><span class="term">In the store</span> <span>\(Readable.size(response.footprint))</span></li>\(partition)\(selecting)
      </ul>\(body)
      <details><summary>\(response.fields.count) fields</summary><div class="table"><table><thead><tr><th scope="col">Field</th><th scope="col">Value</th></tr></thead>
      <tbody>\(rows)</tbody></table></div></details></section>
      """
  }
}

/// The fields whose values pages do not show, because they can be secrets of users.
enum HTTPSecret {
  static let names: Set<String> = [
    "authorization", "proxy-authorization", "authentication-info", "proxy-authentication-info", "cookie", "set-cookie",
  ]

  /// Returns the value of a field, or its length if it can be a secret.
  static func text(of value: String, in name: String) -> String {
    names.contains(name.lowercased()) ? "\(Readable.size(value.utf8.count)), hidden" : value
  }

  /// Returns the value of a field, in hexadecimal if it is not text.
  static func text(of value: [UInt8], in name: String) -> String {
    text(of: String(validating: value, as: UTF8.self) ?? "0x" + Hexadecimal.text(of: value), in: name)
  }
}

extension HTTPStoredResponse {
  /// The freshness in words.
  var freshnessText: String {
    let part = isComplete ? "" : ", incomplete"
    return switch freshness {
    case .fresh: "fresh for \(Readable.seconds(lifetime - age))\(part)"
    case .stale: "stale for \(Readable.seconds(age - lifetime))\(part)"
    case .validated: "validated each time\(part)"
    }
  }
}

extension HTTPCacheInspector.Decision {
  /// The reason for the decision.
  ///
  /// - Parameter known: A stored response for the URL, or `nil` if there isn't one.
  func explanation(known: HTTPStoredResponse?) -> HTML {
    let validation: HTML? =
      validated.isEmpty
      ? nil : " The stored response is offered to the origin, which can confirm it without sending the body again."
    switch status.forward {
    case nil where status.isStale: return "The response is stale, but its origin or the request permits that use."
    case nil where status.isHit: return "The stored response is \(answer?.freshnessText ?? "fresh")."
    case nil: return "The request permits no forwarding, and no stored response can answer it. The answer is 504."
    case .uriMiss:
      return """
        No response is stored for this URL. It was never stored, was evicted, or was removed. If the origin was asked before, the field \
        <code>Cache-Status</code> of its answer names the reason.
        """
    case .varyMiss:
      return
        "Stored responses for this URL: \(candidateCount), but for requests with other values of the fields that select them.\(validation)"
    case .stale:
      return (validated.first ?? known)?.freshness == .validated
        ? "The stored response has <code>no-cache</code>, so the origin is asked each time.\(validation)"
        : "The stored response is \((validated.first ?? known)?.freshnessText ?? "stale").\(validation)"
    case .request:
      return "The fields of the request demand it, as <code>Cache-Control: no-cache</code> does.\(validation)"
    case .partial: return "Only a part of the response is stored. The rest is fetched."
    case .method: return "Only GET and HEAD are answered from the store."
    case .bypass: return "The request has a body."
    case .miss: return "No stored response can be used."
    }
  }
}

extension Readable {
  /// Returns a number of seconds as a duration.
  fileprivate static func seconds(_ seconds: Double) -> String {
    let text = duration(.seconds(Int64(max(-1e15, min(1e15, seconds.magnitude)))))
    return seconds < 0 ? "-\(text)" : text
  }
}
#endif
