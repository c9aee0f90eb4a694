#if Inspector
import Foundation
import HTTPTypes
import Larder

/// The pages about a queue.
extension InspectorPages {
  /// The number of items and of dead letters that a page shows.
  private static var shownItems: Int { 50 }

  /// The number of dead letters that are grouped by their reasons.
  private static var groupedDeadLetters: Int { 10_000 }

  func queue(_ fields: FormFields) async throws -> Page {
    let (number, store, queue) = try queue(fields)
    let state = try await queue.state()
    let counts = state.statistics.counts
    let facts = [
      ("waiting", "Waiting", counts.waiting), ("delayed", "Delayed", counts.delayed),
      ("leased", "Leased", counts.leased), ("dead", "Dead", counts.dead),
    ]
    .map { name, title, count -> HTML in
      """
      <li class="state \(name)"><span class="term">\(title)</span> <span><span data-count="\(name)">\(Readable.count(count))</span>
      \(Self.chart(name))</span></li>
      """
    }
    var changes: HTML?
    if allowsChanges(of: store) {
      let pausing: HTML? = state.isPaused.map { isPaused in
        form(number, [("action", isPaused ? "resume" : "pause")], button: isPaused ? "Resume" : "Pause")
      }
      let draining: HTML? =
        state.isPaused == true ? form(number, [("action", "drain")], button: "Drain", isDangerous: true) : nil
      changes =
        "\(pausing)\(draining)<a class=\"button\" href=\"\(Page.address("enqueue", ["store": "\(number)"]))\">Enqueue</a>"
    }
    let rate: HTML? =
      monitors[number] == nil
      ? nil : "<li><span class=\"term\">Commits per second</span> <span data-count=\"rate\">–</span></li>"
    let items = try await nextItems(number, store, queue)
    return Page(
      title: "Queue", crumbs: crumbs(number, store),
      content: """
        <h1>\(store.name)\(state.isPaused == true ? " (paused)" : "")</h1>
        <ul class="facts states">\(facts)</ul>
        <ul class="facts">
        <li><span class="term">Oldest item</span> <span data-count="oldest">\(state.statistics.oldestAge.map(Readable.duration) ?? "–")</span></li>
        \(rate)
        <li><span class="term">Died since this page opened</span> <span data-count="died">–</span></li>
        </ul>
        <div class="actions">\(changes)<a class="button" href="\(Page.address("dead", ["store": "\(number)"]))">Dead letters</a>
        \(listLinks(number, queue))
        <a class="button" data-key="u" href="\(Page.address("keys", ["store": "\(number)"]))">All items by key</a></div>
        \(try await firstLeases(number, queue))
        <h2>Delivered next</h2>
        \(items)
        """,
      liveAddress: Page.address("state", ["store": "\(number)"]))
  }

  private func nextItems(_ number: Int, _ store: InspectedStore, _ queue: any InspectedQueue) async throws -> HTML {
    let items: [StoreEntry<[UInt8]>]
    do {
      items = try await queue.peek(max: Self.shownItems)
    } catch let error as StoreError where error.isValueUnreadable {
      return "<p class=\"problem\">\(PageFailure.text(of: error))</p>"
    }
    let rows = items.map { item -> HTML in
      let value = InspectedValue(item.value, format: store.contents.format)
      let address = Page.address("entry", ["store": "\(number)", "key": item.key.hexadecimal])
      return """
        <tr><th scope="row"><a href="\(address)">\(Readable.key(item.key))</a></th><td class="number">\(Readable.size(item.value.count))</td>
        <td class="preview">\(value.preview)</td></tr>
        """
    }
    if rows.isEmpty { return "<p class=\"empty\">No item is due.</p>" }
    return """
      <div class="table"><table><thead><tr><th scope="col">Id</th><th scope="col" class="number">Size</th><th scope="col">Value</th></tr></thead>
      <tbody>\(rows)</tbody></table></div>
      """
  }

  func deadLetters(_ fields: FormFields) async throws -> Page {
    let (number, store, queue) = try queue(fields)
    let isWritable = allowsChanges(of: store)
    let filter = DeadLetterFilter(reason: fields["reason"], text: DeadLetterFilter.text(of: fields), until: .max)
    let start = fields["after"].flatMap { UInt128($0) } ?? 0
    let read = try await queue.deadLetters(limit: Self.groupedDeadLetters, after: start)
    let isPartial = read.count == Self.groupedDeadLetters
    let groups = Dictionary(grouping: read, by: \.reason).mapValues(\.count).sorted {
      ($1.value, $0.key) < ($0.value, $1.key)
    }
    let groupRows = groups.map { reason, count -> HTML in
      var buttons: HTML?
      if isWritable {
        buttons = """
          <td class="actions">\(form(number, [("action", "requeueAll"), ("reason", reason)], button: "Requeue all"))\
          \(form(number, [("action", "purgeAll"), ("reason", reason)], button: "Remove all", isDangerous: true))</td>
          """
      }
      return """
        <tr><th scope="row"><a href="\(Page.address("dead", ["store": "\(number)", "reason": reason]))">\(reason)</a></th>
        <td class="number">\(Readable.count(count))\(isPartial ? " or more" : "")</td>\(buttons)</tr>
        """
    }
    let shown = read.filter(filter.contains).prefix(Self.shownItems)
    let rows = shown.map { letter -> HTML in
      let value = letter.bytes.map { InspectedValue($0, format: store.contents.format) }
      var buttons: HTML?
      if isWritable {
        let edit = Page.address(
          "requeue",
          [
            "store": "\(number)", "key": letter.key.hexadecimal,
            "after": "\(letter.sequence == 0 ? 0 : letter.sequence - 1)",
          ])
        let editing: HTML? = value?.edited == nil ? nil : "<a class=\"button\" href=\"\(edit)\">Edit</a>"
        buttons = """
          <td class="actions">\(form(number, [("action", "requeue"), ("key", letter.key.hexadecimal)], button: "Requeue"))\(editing)\
          \(form(number, [("action", "purge"), ("key", letter.key.hexadecimal)], button: "Remove", isDangerous: true))</td>
          """
      }
      return """
        <tr><th scope="row">\(Readable.key(letter.key))</th><td>\(letter.reason)</td><td class="number" data-label="Attempts">\(letter.attempts)</td>
        <td data-label="Died">\(letter.date.ISO8601Format())</td><td class="preview">\(value?.preview ?? "")</td>\(buttons)</tr>
        """
    }
    let change: HTML? = isWritable ? "<th scope=\"col\">Change</th>" : nil
    let end = shown.count == Self.shownItems ? shown.last : isPartial ? read.last : nil
    let next: HTML? = end.map { last in
      let address = Page.address(
        "dead",
        ["store": "\(number)", "reason": filter.reason, "contains": filter.text, "after": "\(last.sequence)"])
      return
        "<nav class=\"pages\" aria-label=\"Pages\"><a class=\"button\" data-key=\"n\" href=\"\(address)\">Next</a></nav>"
    }
    let reason: HTML? = filter.reason.map { "<input type=\"hidden\" name=\"reason\" value=\"\($0)\">" }
    let search: HTML = """
      <form class="search" action="dead" method="get" role="search"><input type="hidden" name="store" value="\(number)">\(reason)
      <label>Text in values <input name="contains" data-key="/" maxlength="256" autocomplete="off" spellcheck="false" value="\(filter.text ?? "")"></label>
      <button>Search</button></form>
      """
    var filtered: HTML?
    if isWritable, filter.text != nil {
      filtered = """
        <p class="actions">\(form(number, [("action", "requeueAll")] + filter.fields, button: "Requeue all that match"))\
        \(form(number, [("action", "purgeAll")] + filter.fields, button: "Remove all that match", isDangerous: true))</p>
        """
    }
    let empty: HTML? =
      shown.isEmpty
      ? "<p class=\"empty\">No dead letter \(isPartial ? "in this part " : "")matches.</p>" : nil
    let lists: HTML =
      read.isEmpty
      ? "<p class=\"empty\">No dead letters.</p>"
      : """
      <h2>By reason</h2>
      <div class="table stacked"><table><thead><tr><th scope="col">Reason</th><th scope="col" class="number">Count</th>\(change)</tr></thead><tbody>\(groupRows)</tbody></table></div>
      <h2>\(filter.reason ?? "Every reason")</h2>
      \(search)\(filtered)\(empty)
      <div class="table stacked"><table><thead><tr><th scope="col">Id</th><th scope="col">Reason</th><th scope="col" class="number">Attempts</th><th scope="col">Died</th><th scope="col">Value</th>\(change)</tr></thead>
      <tbody>\(rows)</tbody></table></div>\(next)
      """
    return Page(
      title: "Dead letters", crumbs: queueCrumbs(number, store),
      content: "<h1>Dead letters of \(store.name)</h1>\(lists)")
  }

  /// The form of a new item.
  func enqueueForm(_ fields: FormFields) throws -> Page {
    let (number, store, _) = try queue(fields)
    try checkAllowsChanges(of: store)
    return Page(
      title: "Enqueue", crumbs: queueCrumbs(number, store),
      content: """
        <h1>Enqueue an item</h1>
        <form class="editor" action="change" method="post">\(hidden([("store", "\(number)"), ("action", "enqueue"), ("form", defaultForm(of: store).rawValue)]))
        <label>Value as \(defaultForm(of: store).title) <textarea name="value" rows="12" spellcheck="false" required></textarea></label>
        <label>Id, if any <input name="newKey" autocomplete="off" spellcheck="false"></label>
        <label>Group, if any <input name="group" autocomplete="off" spellcheck="false"></label>
        <label>Priority <input name="priority" type="number" min="-10" max="10" value="0"></label>
        <div class="actions"><button class="primary">Continue</button></div>
        </form>
        """)
  }

  /// The form with which a dead letter is edited before it is requeued.
  func requeueForm(_ fields: FormFields) async throws -> Page {
    let (number, store, queue) = try queue(fields)
    try checkAllowsChanges(of: store)
    let key = try fields.key("key")
    let letter = try await queue.deadLetters(limit: 1, after: fields["after"].flatMap { UInt128($0) } ?? 0).first
    guard let letter, letter.key == key, let bytes = letter.bytes,
      let edited = InspectedValue(bytes, format: store.contents.format).edited
    else { throw PageFailure.changedMeanwhile }
    return Page(
      title: "Edit and requeue", crumbs: queueCrumbs(number, store),
      content: """
        <h1>Edit and requeue \(Readable.key(letter.key))</h1>
        <form class="editor" action="change" method="post">\
        \(hidden([("store", "\(number)"), ("action", "requeueEdited"), ("key", letter.key.hexadecimal), ("form", edited.form.rawValue)]))
        <label>Value as \(edited.form.title) <textarea name="value" rows="20" spellcheck="false">
        \(edited.text)</textarea></label>
        <div class="actions"><button class="primary">Continue</button></div>
        </form>
        """)
  }

  /// Performs one step of a change of many dead letters.
  func step(
    _ filter: DeadLetterFilter, isRequeue: Bool, _ number: Int, _ queue: any InspectedQueue, _ fields: FormFields
  ) async throws -> ChangeResult {
    let address = Page.address("dead", ["store": "\(number)"])
    let start = fields["after"].flatMap { UInt128($0) } ?? 0
    let letters = try await queue.deadLetters(limit: DeadLetterFilter.stepLength, after: start)
    let changed = try await queue.change(letters.filter(filter.contains), isRequeue: isRequeue)
    let total = (fields["done"].flatMap { Int($0) } ?? 0) + changed
    guard let last = letters.last, letters.count == DeadLetterFilter.stepLength else { return .done(address: address) }
    let passed =
      [
        ("store", "\(number)"), ("action", isRequeue ? "requeueAll" : "purgeAll"), ("until", "\(filter.until)"),
        ("confirmed", "yes"),
        ("after", "\(last.sequence)"), ("done", "\(total)"),
      ] + filter.fields
    return .partly(
      progress(
        "\(Readable.count(total)) dead letters \(isRequeue ? "requeued" : "removed") so far.",
        crumbs: queueCrumbs(number, stores[number]), address: address, passed))
  }

  /// The rule for what changes while a queue is drained.
  static let drainRule: HTML = """
    <p>It is made in steps of 500, and can be stopped between them. The queue stays paused, and a step fails if it is resumed, so no \
    consumer loses an item that it has received. Items that are enqueued before the last step are removed too. Delayed items, leased items \
    and dead letters are left.</p>
    """

  /// Removes some of the waiting items of a paused queue.
  func drainStep(_ number: Int, _ queue: any InspectedQueue, _ fields: FormFields) async throws -> ChangeResult {
    let address = Page.address("queue", ["store": "\(number)"])
    var removed = 0
    while removed < DeadLetterFilter.stepLength {
      guard try await queue.state().isPaused == true else {
        throw PageFailure(
          .conflict, "the queue is not paused; pause it first, so that no consumer receives an item that is removed")
      }
      // Of each group, only the first item is returned.
      let keys = try await queue.peek(max: DeadLetterFilter.stepLength - removed).map(\.key)
      guard !keys.isEmpty else { return .done(address: address) }
      try await queue.remove(keys)
      removed += keys.count
    }
    let total = (fields["done"].flatMap { Int($0) } ?? 0) + removed
    return .partly(
      progress(
        "\(Readable.count(total)) items removed so far.", crumbs: queueCrumbs(number, stores[number]), address: address,
        [("store", "\(number)"), ("action", "drain"), ("confirmed", "yes"), ("done", "\(total)")]))
  }

  func queue(_ fields: FormFields) throws -> (Int, InspectedStore, any InspectedQueue) {
    let (number, store) = try store(fields)
    guard let queue = store.contents.queue else { throw PageFailure(.notFound, "this store is not a queue") }
    return (number, store, queue)
  }

  func queueCrumbs(_ number: Int, _ store: InspectedStore) -> [Page.Crumb] {
    crumbs(number, store) + [Page.Crumb(title: "Queue", address: Page.address("queue", ["store": "\(number)"]))]
  }

  /// A form that consists of one button.
  private func form(_ number: Int, _ fields: [(String, String)], button: String, isDangerous: Bool = false) -> HTML {
    "<form action=\"change\" method=\"post\">\(hidden([("store", "\(number)")] + fields))<button class=\"\(isDangerous ? "danger" : "")\">\(button)</button></form>"
  }

  func defaultForm(of store: InspectedStore) -> EditForm {
    switch store.contents.format {
    case .json: .json
    case .cbor: .cbor
    case .binary: .text
    }
  }
}
#endif
