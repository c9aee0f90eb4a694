#if Inspector
import Foundation
import HTTPTypes
import Larder

/// A change that a form of a page asks for.
enum InspectorChange: Sendable, Hashable {
  case add(StoreKey, [UInt8])
  case set(StoreKey, shown: ValueDigest, [UInt8])
  case remove(StoreKey, shown: ValueDigest)
  case enqueue([UInt8], id: StoreKey?, priority: Int, group: StoreKey?)
  case requeue(StoreKey)
  case requeueEdited(StoreKey, [UInt8])
  case purge(StoreKey)
  case requeueAll(DeadLetterFilter)
  case purgeAll(DeadLetterFilter)
  case pause
  case resume
  /// Removes the waiting items of a queue.
  case drain
  case removeResponses(RemovedResponses)
  /// Copies the readable entries to another store.
  case salvage

  /// Reads a change from the fields of a form.
  ///
  /// - Throws: ``PageFailure`` if a field is missing or invalid.
  init(_ fields: FormFields) throws {
    func key() throws -> StoreKey {
      guard let key = try fields.key("key") else { throw PageFailure(.badRequest, "the form has no key") }
      return key
    }
    func value() throws -> [UInt8] {
      guard let form = fields["form"].flatMap(EditForm.init), let text = fields["value"] else {
        throw PageFailure(.badRequest, "the form has no value")
      }
      return try form.bytes(of: text)
    }
    func newKey(_ name: String) throws -> StoreKey? {
      guard let text = fields[name], !text.isEmpty else { return nil }
      guard let key = fields["keyAs"] == "hex" ? StoreKey(hexadecimal: text) : StoreKey(text) else {
        throw PageFailure(.badRequest, "the key is not hexadecimal: expected two digits for each byte")
      }
      return key
    }
    let shown = ValueDigest(text: fields["shown"] ?? "")
    switch fields["action"] {
    case "add":
      guard let key = try newKey("newKey") else { throw PageFailure(.badRequest, "an entry needs a key") }
      self = .add(key, try value())
    case "set": self = .set(try key(), shown: shown, try value())
    case "remove": self = .remove(try key(), shown: shown)
    case "enqueue":
      guard let priority = Int(fields["priority"] ?? "0") else {
        throw PageFailure(.badRequest, "the priority is not a number")
      }
      self = .enqueue(try value(), id: try newKey("newKey"), priority: priority, group: try newKey("group"))
    case "requeue": self = .requeue(try key())
    case "requeueEdited": self = .requeueEdited(try key(), try value())
    case "purge": self = .purge(try key())
    case "requeueAll": self = .requeueAll(try DeadLetterFilter(fields))
    case "purgeAll": self = .purgeAll(try DeadLetterFilter(fields))
    case "pause": self = .pause
    case "resume": self = .resume
    case "drain": self = .drain
    case "removeURL", "removePrefix":
      guard let url = fields["url"], !url.isEmpty else { throw PageFailure(.badRequest, "the form has no URL") }
      self = .removeResponses(fields["action"] == "removeURL" ? .url(url) : .prefix(url))
    case "removeResponses": self = .removeResponses(.all)
    case "salvage": self = .salvage
    default: throw PageFailure(.badRequest, "the form names no change")
    }
  }

  /// The sentence with which the confirmation names the change.
  var sentence: HTML {
    switch self {
    case .add(let key, let bytes):
      "Add the entry <b>\(Readable.key(key))</b> with a value of \(Readable.size(bytes.count))."
    case .set(let key, _, let bytes):
      "Replace the value of <b>\(Readable.key(key))</b> with one of \(Readable.size(bytes.count))."
    case .remove(let key, _): "Remove the entry <b>\(Readable.key(key))</b>."
    case .enqueue(let bytes, let id, _, let group):
      "Enqueue an item of \(Readable.size(bytes.count))\(id.map { " with the id “\(Readable.key($0))”" } ?? "")\(group.map { " in the group “\(Readable.key($0))”" } ?? "")."
    case .requeue(let key): "Move the dead letter <b>\(Readable.key(key))</b> to the end of the queue."
    case .requeueEdited(let key, let bytes):
      "Enqueue <b>\(Readable.key(key))</b> with an edited value of \(Readable.size(bytes.count)), and remove its dead letter."
    case .purge(let key): "Permanently remove the dead letter <b>\(Readable.key(key))</b>."
    case .requeueAll(let filter): "Move \(filter.description) to the end of the queue."
    case .purgeAll(let filter): "Permanently remove \(filter.description)."
    case .pause: "Pause the queue. No program receives further items until it is resumed."
    case .resume: "Resume the queue."
    case .drain: "Permanently remove all items that are waiting."
    case .removeResponses(let responses): "Remove \(responses.text) from the HTTP cache, in all programs that use it."
    case .salvage: "Copy the entries that can be read."
    }
  }

  /// The kind of the change, for the log, which names no key and no value.
  var kind: String {
    switch self {
    case .add: "add"
    case .set: "set"
    case .remove: "remove"
    case .enqueue: "enqueue"
    case .requeue: "requeue"
    case .requeueEdited: "requeueEdited"
    case .purge: "purge"
    case .requeueAll: "requeueAll"
    case .purgeAll: "purgeAll"
    case .pause: "pause"
    case .resume: "resume"
    case .drain: "drain"
    case .removeResponses: "removeResponses"
    case .salvage: "salvage"
    }
  }
}

/// The result of a confirmed change.
enum ChangeResult: Sendable {
  /// The change is made, and the browser goes to this address.
  case done(address: String)
  /// A part of the change is made, and the page offers to continue.
  case partly(Page)
}

extension InspectorPages {
  /// The page that names a change and asks for its confirmation.
  func confirmation(of change: InspectorChange, _ fields: FormFields) async throws -> Page {
    let (number, store) = try store(fields)
    try check(change, isAllowedFor: store)
    switch change {
    case .add(let key, let bytes), .set(let key, _, let bytes), .requeueEdited(let key, let bytes):
      try store.contents.information.check(key, for: .update)
      try store.contents.check(bytes, forKey: key)
    case .enqueue(let bytes, let id, _, _): try store.contents.check(bytes, forKey: id ?? "new")
    default: break
    }
    let rule: HTML? =
      switch change {
      case .requeueAll, .purgeAll: DeadLetterFilter.rule
      case .drain: Self.drainRule
      case .removeResponses(let responses): try await countOfRemoved(responses, fields)
      case .salvage: salvageRule(of: store)
      default: nil
      }
    let names = [
      "store", "action", "key", "shown", "form", "value", "newKey", "keyAs", "group", "priority", "reason", "url",
      "contains",
    ]
    let now = Int(Date().timeIntervalSince1970 * 1000)
    let passed =
      names.compactMap { name in fields[name].map { (name, $0) } } + [("until", "\(now)"), ("confirmed", "yes")]
    return Page(
      title: "Confirm", crumbs: crumbs(number, store),
      content: """
        <h1>Confirm the change</h1>
        <p class="question">In the store <b>\(store.name)</b>: \(change.sentence)</p>\(rule)
        <form action="change" method="post">\(hidden(passed))
        <div class="actions"><button class="danger">Make this change</button>
        <a class="button" data-key="u" href="\(Page.address("keys", ["store": "\(number)"]))">Cancel</a></div></form>
        """)
  }

  /// A salvage writes to another store, and reads this one.
  private func check(_ change: InspectorChange, isAllowedFor store: InspectedStore) throws {
    guard change == .salvage, allowsChanges else { return try checkAllowsChanges(of: store) }
  }

  /// The page between two steps of a change, which continues by itself if there is a script.
  ///
  /// - Parameters:
  ///   - text: The progress.
  ///   - crumbs: The pages above it.
  ///   - address: The page that follows if the change is stopped.
  ///   - passed: The fields of the next step.
  func progress(_ text: String, crumbs: [Page.Crumb], address: String, _ passed: [(String, String)]) -> Page {
    Page(
      title: "In progress", crumbs: crumbs,
      content: """
        <h1>In progress</h1>
        <p role="status">\(text)</p>
        <form action="change" method="post" data-continue>\(hidden(passed))
        <div class="actions"><button class="primary">Continue</button><a class="button" href="\(address)" data-stop>Stop</a></div></form>
        """)
  }

  /// Applies a confirmed change.
  func make(_ change: InspectorChange, _ fields: FormFields) async throws -> ChangeResult {
    let (number, store) = try store(fields)
    try check(change, isAllowedFor: store)
    func entryAddress(_ key: StoreKey) -> String {
      Page.address("entry", ["store": "\(number)", "key": key.hexadecimal])
    }
    let queueAddress = Page.address("queue", ["store": "\(number)"])
    func queue() throws -> any InspectedQueue {
      guard let queue = store.contents.queue else { throw PageFailure(.badRequest, "this store is not a queue") }
      return queue
    }
    switch change {
    case .add(let key, let bytes):
      try await store.contents.replaceValue(forKey: key, shown: nil, with: bytes)
      return .done(address: entryAddress(key))
    case .set(let key, let shown, let bytes):
      try await store.contents.replaceValue(forKey: key, shown: shown, with: bytes)
      return .done(address: entryAddress(key))
    case .remove(let key, let shown):
      try await store.contents.replaceValue(forKey: key, shown: shown, with: nil)
      return .done(address: Page.address("keys", ["store": "\(number)"]))
    case .enqueue(let bytes, let id, let priority, let group):
      let item = try await queue().enqueue(bytes, id: id, priority: priority, group: group)
      guard !item.isDuplicate else {
        throw PageFailure(.conflict, "an item with this id is or was in the queue, so none was added")
      }
    case .requeue(let key):
      guard try await queue().requeue([key]) > 0 else { throw PageFailure.changedMeanwhile }
    case .requeueEdited(let key, let bytes): try await queue().requeue(key, as: bytes)
    case .purge(let key):
      guard try await queue().purge([key]) > 0 else { throw PageFailure.changedMeanwhile }
    case .requeueAll(let filter): return try await step(filter, isRequeue: true, number, queue(), fields)
    case .purgeAll(let filter): return try await step(filter, isRequeue: false, number, queue(), fields)
    case .pause: try await queue().setPaused(true)
    case .resume: try await queue().setPaused(false)
    case .drain: return try await drainStep(number, queue(), fields)
    case .salvage: return try await salvageStep(number, store, fields)
    case .removeResponses(let responses):
      try await httpCache(fields).2.remove(responses)
      return .done(address: Page.address("http", ["store": "\(number)"]))
    }
    return .done(address: queueAddress)
  }
}
#endif
