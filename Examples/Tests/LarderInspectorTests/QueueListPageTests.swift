import Foundation
import Hummingbird
import HummingbirdTesting
import Larder
import LarderInspector
import LarderQueue
import LarderStoreQueue
import LarderTesting
import Testing

@Suite("Pages of leased items, groups and schedules", .timeLimit(.minutes(5)))
struct QueueListPageTests {
  private let queue: StoreQueue<MemoryStore<[UInt8]>, String>

  init() async throws {
    queue = try await MemoryStore<[UInt8]>().queue(of: String.self, prefix: "q/", codec: .json())
  }

  private var inspected: InspectedStore { InspectedStore("jobs", queue, codec: .json()) }

  /// The address behind the link to the next page.
  private func next(_ page: String) -> String? {
    page.firstMatch(of: #/data-key="n" href="([^"]+)"/#).map { String($0.1).replacing("&amp;", with: "&") }
  }

  @Test func `what consumers have is on the page of the queue and on pages of its own`() async throws {
    try await withInspector([inspected]) { browser in
      #expect(try await browser.text("queue?store=0").contains("No consumer has an item."))
      #expect(try await browser.text("leased?store=0").contains("No consumer has an item."))
      try await queue.enqueue((0..<120).map { QueueInput("value", id: StoreKey("id\($0)<")) })
      try await queue.enqueue([QueueInput("value", id: "waiting")])
      try await queue.enqueue([QueueInput("value", id: "in a group", priority: 1, group: "customer<1>")])
      let deliveries = try await queue.receive(max: 121, lease: .seconds(3600))
      #expect(deliveries.count == 121)
      let page = try await browser.text("queue?store=0")
      #expect(page.contains("<h2>Held by consumers</h2>") && page.contains("leased?store=0"))
      #expect(page.matches(of: /<td class="number" data-label="Attempt">1<\/td>/).count == 10)
      var address: String? = "leased?store=0"
      var (ids, lengths) = (Set<Substring>(), [Int]())
      while let current = address {
        let page = try await browser.text(current)
        let found = page.matches(of: #/<a href="entry[^"]+">([^<]+)</a>/#).map(\.1)
        ids.formUnion(found)
        lengths.append(found.count)
        if current == "leased?store=0" { #expect(page.contains("jobs") && page.contains("customer&lt;1&gt;")) }
        #expect(!page.contains("waiting<"))
        address = next(page)
      }
      #expect(lengths == [50, 50, 21])
      #expect(ids.count == 121 && ids.contains("id7&lt;"))
      #expect(try await browser.get("leased?store=0&after=00").status == .badRequest)
      #expect(try await browser.get("leased?store=0&after=zz").status == .badRequest)
    }
  }

  @Test func `groups are shown with the items that block them`() async throws {
    try await withInspector([inspected]) { browser in
      #expect(try await browser.text("groups?store=0").contains("No group has items."))
      try await queue.enqueue([
        QueueInput("1", id: "first", group: "leased<"), QueueInput("2", group: "leased<"),
        QueueInput("3", id: "later", after: .seconds(600), group: "delayed"), QueueInput("4", group: "free"),
      ])
      try await queue.enqueue((0..<150).map { QueueInput("\($0)", group: "many") })
      _ = try await queue.receive(max: 1, lease: .seconds(600))
      let page = try await browser.text("groups?store=0")
      let rows = page.matches(
        of:
          #/<tr><th scope="row">(.+?)</th><td class="number" data-label="Items">(.+?)</td><td data-label="Blocked by">(.+?)</td></tr>/#
      )
      let texts = rows.map { "\($0.1) \($0.2) \($0.3.replacing(#/<[^>]+>/#, with: ""))" }
      #expect(texts.count == 4, "\(page)")
      for (text, start) in zip(
        texts,
        [
          "free 1 none", "many 100 or more none", "delayed 1 later, delayed until 20",
          "leased&lt; 2 first, leased until 20",
        ])
      {
        #expect(text.hasPrefix(start), "\(text)")
      }
    }
  }

  @Test func `schedules are shown with their last due dates`() async throws {
    try await withInspector([inspected]) { browser in
      #expect(try await browser.text("schedules?store=0").contains("No schedule has enqueued items."))
      let start = Date(timeIntervalSince1970: 1_800_000_000)
      for name in ["hourly<", "daily"] as [StoreKey] {
        try await queue.enqueueDue(QueueSchedule(name: name, every: .seconds(3600), from: start) { _ in "due" })
      }
      try await queue.base.setValue([1], forKey: "q/cbroken")
      let page = try await browser.text("schedules?store=0")
      #expect(
        page.matches(
          of: #/<th scope="row">(daily|hourly&lt;)</th><td data-label="Last due date">\d{4}-\d\d-\d\dT[^<]+Z</td>/#
        ).count == 2)
      #expect(
        page.contains(
          "<th scope=\"row\">broken</th><td data-label=\"Last due date\"><span class=\"problem\">the record is damaged</span>"
        ))
    }
  }

  @Test func `a queue of one program lists its leased items and no groups`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "larder-lists-\(UUID().uuidString)")
    let queue = try await QueueStore<String>(path: folder.path, codec: .json())
    try await queue.enqueue("value", id: "a")
    _ = try await queue.receive(max: 1, lease: .seconds(600))
    try await withInspector([InspectedStore("outbox", queue, codec: .json())]) { browser in
      let page = try await browser.text("queue?store=0")
      #expect(page.contains(">a</a>"))
      #expect(try await browser.text("groups?store=0").contains("No group has items."))
    }
    try await queue.close()
    try FileManager.default.removeItem(at: folder)
  }
}
