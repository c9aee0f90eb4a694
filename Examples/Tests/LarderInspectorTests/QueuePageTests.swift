import Hummingbird
import HummingbirdTesting
import Larder
import LarderInspector
import LarderQueue
import LarderStoreQueue
import LarderTesting
import Testing

@Suite("Pages of queues", .timeLimit(.minutes(5)))
struct QueuePageTests {
  private let queue: StoreQueue<MemoryStore<[UInt8]>, String>

  init() async throws {
    queue = try await MemoryStore<[UInt8]>().queue(
      of: String.self, prefix: "q/", codec: .json(),
      configuration: StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1, retryPolicy: .immediate)))
  }

  private var inspected: InspectedStore { InspectedStore("jobs", queue, codec: .json()) }

  /// Enqueues items and lets them die.
  private func die(_ ids: some Sequence<StoreKey>) async throws {
    try await queue.enqueue(ids.map { QueueInput("value of \($0)", id: $0) })
    while case let deliveries = try await queue.receive(max: 1000, lease: .seconds(30)), !deliveries.isEmpty {
      _ = try await queue.release(deliveries.map(\.receipt), after: nil, countsAsAttempt: true)
    }
  }

  @Test func `counts items and dead letters are shown`() async throws {
    try await die(["dead<1>"])
    try await queue.enqueue("later", after: .seconds(600))
    try await queue.enqueue("first", id: "a")
    _ = try await queue.receive(max: 1, lease: .seconds(30))
    try await queue.enqueue("second", id: "b")
    try await withInspector([inspected]) { browser in
      let page = try await browser.text("queue?store=0")
      #expect(page.contains(">b</a>"))
      let state = try await browser.text("state?store=0")
      #expect(state.contains(#""waiting":1,"delayed":1,"leased":1,"dead":1"#))
      let dead = try await browser.text("dead?store=0")
      #expect(dead.contains("dead&lt;1&gt;"))
      #expect(dead.contains("value of"))
      #expect(!dead.contains("action=\"change\""))
      #expect(try await browser.text("").contains("queue?store=0"))
    }
  }

  @Test func `a dead letter is requeued edited or removed`() async throws {
    try await die(["a", "b", "c"])
    try await withInspector([inspected], allowsChanges: true) { browser in
      let asked = try await browser.post(["store": "0", "action": "requeue", "key": "61"])
      #expect(String(buffer: asked.body).contains("Move the dead letter <b>a</b> to the end of the queue."))
      #expect(try await queue.counts().dead == 3)
      #expect(try await browser.submit(String(buffer: asked.body)).status == .seeOther)
      #expect(try await queue.counts() == QueueCounts(waiting: 1, dead: 2))

      let letter = try #require(try await queue.deadLetters(limit: 1).first)
      let form = try await browser.text("requeue?store=0&key=\(letter.key.hexadecimal)&after=\(letter.sequence - 1)")
      #expect(form.contains("value of &quot;b&quot;") || form.contains("value of \\&quot;b\\&quot;"))
      _ = try await browser.confirm([
        "store": "0", "action": "requeueEdited", "key": "62", "form": "json", "value": "\"edited\"",
      ])
      #expect(try await queue.value(forKey: "b") == "edited")
      _ = try await browser.confirm(["store": "0", "action": "purge", "key": "63"])
      #expect(try await queue.counts() == QueueCounts(waiting: 2))
      #expect(try await browser.confirm(["store": "0", "action": "purge", "key": "63"]).status == .conflict)
    }
  }

  @Test func `items are enqueued and the queue is paused and resumed`() async throws {
    try await withInspector([inspected], allowsChanges: true) { browser in
      let enqueue: KeyValuePairs<String, String> = [
        "store": "0", "action": "enqueue", "newKey": "x", "form": "json", "value": "\"new\"",
      ]
      #expect(try await browser.confirm(enqueue).status == .seeOther)
      #expect(try await queue.value(forKey: "x") == "new")
      #expect(try await browser.confirm(enqueue).status == .conflict)
      #expect(
        try await browser.post(["store": "0", "action": "enqueue", "form": "json", "value": "{"]).status == .badRequest)
      _ = try await browser.confirm(["store": "0", "action": "pause"])
      #expect(try await queue.isPaused())
      #expect(try await browser.text("queue?store=0").contains("jobs (paused)"))
      _ = try await browser.confirm(["store": "0", "action": "resume"])
      #expect(try await !queue.isPaused())
    }
  }

  @Test("Many dead letters are changed in steps that can be stopped", arguments: ["requeueAll", "purgeAll"])
  func many(action: String) async throws {
    try await die((0..<1200).map { StoreKey("id\($0)") })
    // An item with the id of a dead letter, which therefore stays.
    try await queue.setValue("live", forKey: "id7")
    try await withInspector([inspected], allowsChanges: true) { browser in
      let reason = try #require(try await queue.deadLetters(limit: 1).first).reason.description
      let asked = String(buffer: try await browser.post(["store": "0", "action": action, "reason": reason]).body)
      #expect(asked.contains("Dead letters that are added after this confirmation are left."))
      #expect(try await queue.counts().dead == 1200)
      var response = try await browser.submit(asked)
      var steps = 1
      while response.status == .ok, steps < 10 {
        #expect(try await queue.counts().dead >= 1200 - 500 * steps)
        response = try await browser.submit(String(buffer: response.body))
        steps += 1
      }
      #expect(steps == 3)
      #expect(response.status == .seeOther)
      #expect(try await queue.counts().dead == (action == "requeueAll" ? 1 : 0))
    }
  }

  @Test func `dead letters are filtered by a text in their values`() async throws {
    try await die((0..<600).map { StoreKey("id\($0)") })
    try await withInspector([inspected], allowsChanges: true) { browser in
      let found = try await browser.text("dead?store=0&contains=id59")
      #expect(found.matches(of: /value of .{0,20}id59/).count == 11, "\(found)")
      #expect(found.contains("Requeue all that match"))
      #expect(try await browser.text("dead?store=0&contains=%3Cnone").contains("No dead letter matches."))
      let change: KeyValuePairs<String, String> = ["store": "0", "action": "requeueAll", "contains": "id59"]
      let asked = String(buffer: try await browser.post(change).body)
      #expect(asked.contains("Move all dead letters whose values contain “id59” to the end of the queue."))
      // Two steps, because the filter is applied to what a step reads.
      let step = try await browser.submit(asked)
      #expect(try await browser.submit(String(buffer: step.body)).status == .seeOther)
      #expect(try await queue.counts() == QueueCounts(waiting: 11, dead: 589))
    }
  }

  /// Consumers of a queue that is not paused could receive what is being removed.
  @Test func `a paused queue is drained in steps`() async throws {
    try await die(["dead"])
    try await queue.enqueue((0..<700).map { QueueInput("value", id: StoreKey("id\($0)")) })
    try await queue.enqueue((0..<3).map { QueueInput("in a group", id: StoreKey("group\($0)"), group: "g") })
    try await queue.enqueue("later", after: .seconds(600))
    let delivery = try #require(try await queue.receive(max: 1, lease: .seconds(30)).first)
    try await withInspector([inspected], allowsChanges: true) { browser in
      let drain: KeyValuePairs<String, String> = ["store": "0", "action": "drain"]
      #expect(!(try await browser.text("queue?store=0").contains(">Drain<")))
      #expect(try await browser.confirm(drain).status == .conflict)
      #expect(try await queue.counts().waiting == 702)
      _ = try await browser.confirm(["store": "0", "action": "pause"])
      #expect(try await browser.text("queue?store=0").contains(">Drain<"))
      let asked = String(buffer: try await browser.post(drain).body)
      #expect(asked.contains("Permanently remove all items that are waiting."))
      #expect(asked.contains("a step fails if it is resumed"))
      let step = try await browser.submit(asked)
      #expect(String(buffer: step.body).contains("500 items removed so far."))
      try await queue.resume()
      #expect(try await browser.submit(String(buffer: step.body)).status == .conflict)
      try await queue.pause()
      #expect(try await browser.submit(String(buffer: step.body)).status == .seeOther)
      #expect(try await queue.counts() == QueueCounts(waiting: 0, delayed: 1, leased: 1, dead: 1))
      #expect(try await queue.acknowledge([delivery.receipt]).isEmpty)
    }
  }

  /// The confirmation has a time, and what dies later has not been seen by the one who confirmed it.
  @Test func `what dies after the confirmation is left`() async throws {
    try await die(["a"])
    try await withInspector([inspected], allowsChanges: true) { browser in
      let fields: KeyValuePairs<String, String> = [
        "store": "0", "action": "purgeAll", "until": "1000", "confirmed": "yes",
      ]
      let response = try await browser.post(fields)
      #expect(response.status == .seeOther)
      #expect(try await queue.counts().dead == 1)
    }
  }
}
