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

  /// The lease of an order that is confirmed, which some freezes exceed.
  private static let lease = Duration.seconds(1)

  /// A way in which instances are disturbed.
  private enum Disturbance: CaseIterable {
    case kill, freeze, end, restartOfTheDatabase
  }

  private func instance(_ name: String, _ url: String) throws -> ShopInstance {
    try ShopInstance(
      folder: "\(folder)/\(name)",
      variables: ["STORES_SHOP_URL": url, "LIMITS_ORDERS_RATE": "1000000", "WORKERS_MAIL_LEASE": "1s"])
  }

  @Test("One instance, over SQLite") func sqlite() async throws {
    let url = "sqlite:\(folder)/shop.sqlite"
    let instance = try instance("one", url)
    try await instance.start()
    try await run([instance], url: url, address: instance.address)
  }

  @Test(
    "Two instances behind nginx, over PostgreSQL", .enabled(if: Nginx.program != nil, "nginx is not installed"),
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed"))
  func postgres() async throws {
    let server = try await PostgresServer()
    let url = "postgres:\(server.connectionString)#shop"
    let instances = try ["one", "two"].map { try instance($0, url) }
    // Both create the tables if they are missing.
    for instance in instances { try await instance.start() }
    let nginx = try Nginx(folder: folder + "/nginx", instances: instances.map(\.address))
    try nginx.start()
    defer { nginx.stop() }
    try await run(instances, url: url, database: server, address: nginx.address)
    try await server.close()
  }

  private func run(
    _ instances: [ShopInstance], url: String, database: PostgresServer? = nil, address: String
  ) async throws {
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "shop")
    print("\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess), \(Self.rounds) rounds")
    // An instance that has ended already gets no signal.
    defer { for instance in instances { #expect(throws: Never.self) { try instance.signal(SIGKILL) } } }
    let isOver = Flag()
    async let loadCount = load(address, until: isOver)
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
      for _ in 0..<Self.rounds where !isOver.isSet {
        try await Task.sleep(for: .milliseconds(Int.random(in: 50...400, using: &random)))
        try await disturb(instances, database, using: &random)
      }
      isOver.set()
      return try await group.reduce(into: [:]) { $0.merge($1) { first, _ in first } }
    }
    if let count = try await loadCount {
      print("\(count) products by wrk")
      #expect(count > 0)
    }
    try await check(answered, url: url) {
      for instance in instances { try await instance.end() }
    }
  }

  /// Reads products with wrk until the flag is set, for a second at a time.
  ///
  /// - Returns: The number of answers, or `nil` if wrk is not installed.
  private func load(_ address: String, until isOver: Flag) async throws -> Int? {
    let programs = ["/usr/bin/wrk", "/usr/local/bin/wrk", "/opt/homebrew/bin/wrk"]
    guard let program = programs.first(where: FileManager.default.isExecutableFile) else { return nil }
    var count = 0
    while !isOver.isSet {
      let (process, output) = (Process(), Pipe())
      process.executableURL = URL(filePath: program)
      process.arguments = ["-t", "1", "-c", "4", "-d", "1s", "http://\(address)/products/1"]
      process.standardOutput = output
      process.standardError = FileHandle.nullDevice
      try process.run()
      while process.isRunning { try await Task.sleep(for: .milliseconds(20)) }
      let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      // Without an instance, there is no summary.
      let summary = text.split(separator: "\n").first { $0.contains(" requests in ") }
      count += summary?.split(separator: " ").first.flatMap { Int($0) } ?? 0
    }
    return count
  }

  /// Disturbs one instance or all of them, each in a way of its own, or the database.
  private func disturb(
    _ instances: [ShopInstance], _ database: PostgresServer?, using random: inout SeededGenerator
  ) async throws {
    let kinds = Disturbance.allCases.filter { $0 != .restartOfTheDatabase || database != nil }
    let isForAll = Int.random(in: 0..<3, using: &random) == 0
    let chosen = isForAll ? instances : [instances[Int.random(in: 0..<instances.count, using: &random)]]
    let disturbances = chosen.map { instance in
      // A fourth of the freezes is longer than a lease, so that another worker takes the orders over.
      let isLong = Int.random(in: 0..<4, using: &random) == 0
      let pause = isLong ? Self.lease * 1.5 : .milliseconds(Int.random(in: 1...500, using: &random))
      return (instance, kinds[Int.random(in: 0..<kinds.count, using: &random)], pause)
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (instance, kind, pause) in disturbances where kind != .restartOfTheDatabase {
        group.addTask {
          switch kind {
          case .kill, .restartOfTheDatabase: try await instance.restartAfterKill()
          case .freeze:
            try instance.signal(SIGSTOP)
            try await Task.sleep(for: pause)
            try instance.signal(SIGCONT)
          case .end:
            try await instance.end()
            try await instance.start()
          }
        }
      }
      if let database, disturbances.contains(where: { $0.1 == .restartOfTheDatabase }) {
        group.addTask { try await database.restart(.immediate) }
      }
      try await group.waitForAll()
    }
  }

  /// Compares the answers with the store, before and after the instances end.
  private func check(_ answered: [String: Order], url: String, end: () async throws -> Void) async throws {
    let store = ShopStore(try ShopSettings(file: nil, variables: ["STORES_SHOP_URL": url]))
    let shop = try await Shop(store.open(), of: store)
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
    await store.closeClock()
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
