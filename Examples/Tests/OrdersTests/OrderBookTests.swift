import ExampleSupport
import Foundation
import GRDB
import Larder
import LarderGRDB
import LarderQueue
import Testing

@testable import Orders

@Suite(.timeLimit(.minutes(5))) final class OrderBookTests {
  private let folder = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID())").path

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: folder)
    } catch {
      Issue.record(error, "the folder of a test could not be removed")
    }
  }

  private func book() async throws -> OrderBook { try await OrderBook(path: "\(folder)/shop.sqlite") }
  private func queue() async throws -> QueueStore<OrderPlaced> { try await QueueStore(path: "\(folder)/queue") }

  @Test func `an order its stock and its event are one transaction`() async throws {
    let book = try await book()
    try await book.stock.setValue(3, forKey: "tea")
    #expect(try await book.place("tea", count: 2) == 1)
    await #expect(throws: OutOfStock(item: "tea", left: 1)) { try await book.place("tea", count: 2) }
    await #expect(throws: OutOfStock(item: "milk", left: 0)) { try await book.place("milk", count: 1) }
    #expect(try await book.stock.value(forKey: "tea") == 1)
    #expect(try await book.pool.read { try Order.fetchCount($0) } == 1)
    #expect(
      try await book.outbox.values(forKeys: [StoreKey(integer: 1)]) == [OrderPlaced(order: 1, item: "tea", count: 2)])
    try await book.close()
  }

  @Test func `an event is sent once also if the process dies before it leaves the outbox`() async throws {
    let (book, queue) = (try await book(), try await queue())
    try await book.stock.setValue(300, forKey: "tea")
    for _ in 0..<250 { _ = try await book.place("tea", count: 1) }
    // A process that died had moved the first events, and had not removed them yet.
    let moved = try await book.outbox.entries(in: .all, limit: 100, order: .ascending)
    _ = try await queue.enqueue(moved.map { QueueInput($0.value, id: $0.key) })
    // Some of them were even delivered.
    for delivery in try await queue.receive(max: 10, lease: .seconds(30)) {
      try await queue.acknowledge(delivery.receipt)
    }
    #expect(try await book.forward(to: queue) == 250)
    #expect(try await queue.count(in: .all) == 240)
    #expect(try await book.forward(to: queue) == 0)
    #expect(try await book.outbox.count(in: .all) == 0)
    try await queue.close()
    try await book.close()
  }

  /// Kills processes that place orders and send events.
  @Test func `killed processes lose no order and no event`() async throws {
    let stocked = try await book()
    try await stocked.stock.setValue(1000, forKey: "tea")
    try await stocked.close()
    let rounds = ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap { Int($0) } ?? 12
    var sent = ""
    for round in 0..<rounds {
      let process = try ExampleProcess(
        "Orders", (round.isMultiple(of: 2) ? ["place", "tea"] : ["send"]) + ["--folder", folder])
      try await Task.sleep(for: .milliseconds(Int.random(in: 5...60)))
      try await process.end()
      sent += try process.text
    }
    let (book, queue) = (try await book(), try await queue())
    _ = try await book.forward(to: queue)
    let orders = try await book.pool.read { db in try Order.fetchAll(db).compactMap(\.id) }
    #expect(try await book.stock.value(forKey: "tea") == 1000 - orders.count)
    let waiting = try await queue.values(forKeys: orders.map { StoreKey(integer: $0) }).compactMap { $0?.order }
    // An order is in the queue, or was delivered, which a killed process may have done without acknowledging it.
    for order in orders { #expect(waiting.contains(order) || sent.contains("order \(order): "), "order \(order)") }
    #expect(try await queue.count(in: .all) == waiting.count)
    try await queue.close()
    try await book.close()
  }
}
