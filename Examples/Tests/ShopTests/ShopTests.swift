import Foundation
import Larder
import LarderHTTPClient
import LarderMetrics
import LarderPostgres
import LarderStoreQueue
import LarderTesting
import PostgresServers
import Testing

@testable import Shop

/// Ends the shop in all ways while users order.
///
/// No order may be lost or taken twice, and no user may get the session or the orders of another one.
@Suite("The shop, ended while users order", .serialized, .timeLimit(.minutes(60)))
final class ShopTests: Sendable {
  private static let rounds = ProcessInfo.processInfo.environment["LARDER_ROUNDS"].flatMap { Int($0) } ?? 4

  private let folder = FileManager.default.temporaryDirectory.appending(path: "larder-shop-\(UUID().uuidString)").path

  deinit {
    // The folder of a test is of no use afterward.
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// A way in which an instance is disturbed.
  private enum Disturbance: CaseIterable {
    case kill, freeze, end, restartOfTheDatabase
  }

  @Test("One instance, over SQLite") func sqlite() async throws {
    let url = "sqlite:\(folder)/shop.sqlite"
    let instance = try ShopInstance(folder: folder + "/one", arguments: ["--store", url])
    try await run([instance], url: url) { instance.address }
  }

  @Test("Two instances behind nginx, over PostgreSQL", .enabled(if: PostgresServer.isInstalled))
  func postgres() async throws {
    let server = try await PostgresServer()
    let url = "postgres:\(server.connectionString)"
    let instances = try ["one", "two"].map { try ShopInstance(folder: "\(folder)/\($0)", arguments: ["--store", url]) }
    // Both create the tables if they are missing.
    for instance in instances { try await instance.start() }
    let nginx = try Nginx(folder: folder + "/nginx", instances: instances.map(\.address))
    try nginx?.start()
    let turn = Locked(0)
    defer { nginx?.stop() }
    try await run(instances, url: url, database: server) {
      if let nginx { return nginx.address }
      return instances[
        turn.withLock { turn in
          turn += 1; return turn % 2
        }
      ].address
    }
    try await server.close()
  }

  private func run(
    _ instances: [ShopInstance], url: String, database: PostgresServer? = nil,
    address: @escaping @Sendable () -> String
  ) async throws {
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "shop")
    print("\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess), \(Self.rounds) rounds")
    if database == nil { for instance in instances { try await instance.start() } }
    defer { for instance in instances { instance.signal(SIGKILL) } }
    let isOver = Flag()
    let answered = try await withThrowingTaskGroup(of: [String: Order].self) { group in
      for number in 0..<6 {
        let user = ShopUser(name: "user \(number)", address: address)
        group.addTask {
          do {
            return try await user.order { [isOver] in isOver.isSet }
          } catch {
            isOver.set()
            throw error
          }
        }
      }
      for round in 0..<Self.rounds where !isOver.isSet {
        try await Task.sleep(for: .milliseconds(Int.random(in: 50...400, using: &random)))
        let instance = instances[round / Disturbance.allCases.count % instances.count]
        let pause = Duration.milliseconds(Int.random(in: 1...500, using: &random))
        try await disturb(instance, Disturbance.allCases[round % Disturbance.allCases.count], for: pause, database)
      }
      isOver.set()
      return try await group.reduce(into: [:]) { $0.merge($1) { first, _ in first } }
    }
    try await check(answered, url: url) {
      for instance in instances { try await instance.end() }
    }
  }

  private func disturb(
    _ instance: ShopInstance, _ disturbance: Disturbance, for pause: Duration, _ database: PostgresServer?
  ) async throws {
    switch disturbance {
    case .kill:
      instance.signal(SIGKILL)
      _ = try await instance.waitForEnd()
      try await instance.start()
    case .freeze:
      instance.signal(SIGSTOP)
      try await Task.sleep(for: pause)
      instance.signal(SIGCONT)
    case .end:
      try await instance.end()
      try await instance.start()
    case .restartOfTheDatabase:
      if let database { try await database.restart(.immediate) }
    }
  }

  /// Compares the answers with the store, before and after the instances end.
  private func check(_ answered: [String: Order], url: String, end: () async throws -> Void) async throws {
    let store = try await ShopStore(url)
    let shop = try await Shop(store.open(), time: store.time, ordersPerSecond: 1)
    // An item that a killed worker had is delivered again when its lease ends.
    let limit = ContinuousClock.now + .seconds(60)
    while ContinuousClock.now < limit {
      if try await shop.outbox.count(in: .all) == 0, try await shop.mails.count(in: .all) == answered.count { break }
      try await Task.sleep(for: .milliseconds(20))
    }
    try await end()
    let orders = try await shop.orders.entries(in: .all, limit: .max, order: .ascending).map(\.value)
    let numbers = orders.map(\.number).sorted()
    #expect(answered.count >= 6)
    #expect(numbers == Array(1...answered.count), "each order has a number of its own")
    #expect(Set(orders.map(\.description)) == Set(answered.values.map(\.description)))
    #expect(try await shop.numbers.value(forKey: "order") == answered.count)
    #expect(try await shop.outbox.count(in: .all) == 0)
    let mails = try await shop.mails.entries(in: .all, limit: .max, order: .ascending)
    #expect(mails.compactMap { $0.key.integer.map { Int($0) } } == numbers, "each order was confirmed once")
    print("\(answered.count) orders")
    try await shop.http.shutdown()
    try await shop.bytes.close()
    await store.database?.close()
  }
}

/// A flag that many tasks share.
private final class Flag: Sendable {
  private let state = Locked(false)

  var isSet: Bool { state.withLock { $0 } }

  func set() { state.withLock { $0 = true } }
}

extension Order {
  fileprivate var description: String { "\(number) \(user) \(item)" }
}
