import HTTPTypes
import HummingbirdTesting
import Larder
import LarderInspector
import LarderPostgres
import LarderTesting
import NIOCore
import PostgresServers
import Testing

/// The pages of a queue on a server, whose items other hosts share.
@Suite(
  "Pages of queues in PostgreSQL", .timeLimit(.minutes(5)),
  .enabled(if: PostgresServer.isExternal || PostgresServer.isInstalled, "PostgreSQL is not installed"))
struct PostgresQueuePageTests {
  @Test func `a queue in PostgreSQL is shown and changed`() async throws {
    let server = try await PostgresServer.shared
    let database = try await PostgresDatabase(server.connectionString, schema: server.newSchema())
    let queue = try await PostgresQueue<String>(
      in: database, name: "jobs", codec: .json(),
      configuration: PostgresQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1, retryPolicy: .immediate)))
    try await queue.enqueue([QueueInput("first", id: "a"), QueueInput("second", id: "b"), QueueInput("third", id: "c")])
    let deliveries = try await queue.receive(max: 3, lease: .seconds(30))
    _ = try await queue.release(deliveries.map(\.receipt), after: nil, countsAsAttempt: true)
    try await queue.enqueue("later", after: .seconds(600))
    try await queue.enqueue([QueueInput("fourth", id: "d")])
    _ = try await queue.receive(max: 1, lease: .seconds(600))
    try await withInspector([InspectedStore("jobs", queue, codec: .json())], allowsChanges: true) { browser in
      #expect(try await browser.text("counts?store=0").contains(#""entries":"2""#))
      #expect(
        try await browser.text("state?store=0").contains(#""waiting":0,"delayed":1,"leased":1,"dead":3"#))
      let leased = try await browser.text("leased?store=0")
      #expect(leased.contains(">d</a>") && leased.matches(of: /<tr><th scope="row"/).count == 1)
      let dead = try await browser.text("dead?store=0")
      for value in ["first", "second", "third"] { #expect(dead.contains(value)) }
      #expect(try await browser.confirm(["store": "0", "action": "requeue", "key": "61"]).status == .seeOther)
      let edited = try await browser.confirm([
        "store": "0", "action": "requeueEdited", "key": "62", "form": "json", "value": "\"edited\"",
      ])
      #expect(edited.status == .seeOther)
      #expect(try await queue.value(forKey: "b") == "edited")
      #expect(try await browser.confirm(["store": "0", "action": "purgeAll"]).status == .seeOther)
      let enqueued = try await browser.confirm([
        "store": "0", "action": "enqueue", "newKey": "x", "form": "json", "value": "\"new\"", "group": "g",
      ])
      #expect(enqueued.status == .seeOther)
      #expect(try await browser.text("groups?store=0").contains("<th scope=\"row\">g</th>"))
      #expect(try await browser.text("schedules?store=0").contains("No schedule has enqueued items."))
      let page = try await browser.text("queue?store=0")
      for id in ["a", "b", "x"] { #expect(page.contains(">\(id)</a>")) }
      #expect(try await queue.counts() == QueueCounts(waiting: 3, delayed: 1, leased: 1))
      _ = try await browser.confirm(["store": "0", "action": "pause"])
      #expect(try await browser.text("queue?store=0").contains("jobs (paused)"))
      #expect(try await browser.confirm(["store": "0", "action": "drain"]).status == .seeOther)
      #expect(try await queue.counts() == QueueCounts(delayed: 1, leased: 1))
      _ = try await browser.confirm(["store": "0", "action": "resume"])
      #expect(try await !queue.isPaused())
      #expect(try await browser.text("keys?store=0").contains("later"))
    }
    try await queue.close()
    await database.close()
  }
}
