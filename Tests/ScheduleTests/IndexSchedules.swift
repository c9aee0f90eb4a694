import Larder
import LarderCBOR
import LarderIndexes
import LarderTesting
import TestSupport
import Testing

/// Indexes in many schedules: they agree with the values, and a unique key has one owner.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct IndexSchedules {
  private struct User: Codable, Sendable, Hashable {
    var name: String
    var team: Int
  }

  private static let byName = StoreIndex<User>("name", isUnique: true) { _, user in [[user.name]] }
  private static let byTeam = StoreIndex<User>("team") { _, user in [[user.team]] }

  private typealias Users = IndexedStore<FaultyStore<MemoryStore<[UInt8]>>, User>

  private static func open(_ bytes: FaultyStore<MemoryStore<[UInt8]>>) async throws -> Users {
    try await bytes.indexed(by: [byName, byTeam], codec: .cbor(User.self))
  }

  /// Throws if the indexes differ from the values, or a query does.
  private static func check(_ users: Users) async throws {
    let report = try await users.verifyIndexes()
    guard report.findings.isEmpty else { throw Wrong("\(report.findings)") }
    let entries = try await users.entries(in: .all, limit: .max, order: .ascending)
    let named = try await users.entries(where: byName, limit: .max)
    let teams = try await users.entries(where: byTeam, limit: .max)
    guard named == entries.sorted(by: { $0.value.name < $1.value.name }),
      teams == entries.sorted(by: { ($0.value.team, $0.key) < ($1.value.team, $1.key) })
    else { throw Wrong("\(named) and \(teams) of \(entries)") }
  }

  // MARK: A unique index

  private enum Operation: Sendable {
    case insert(key: StoreKey, name: String)
    /// Sets two entries in one batch.
    case set(String, String)
    case exchange
    case remove(StoreKey)
    case removeAll
    case read
  }

  private enum Result: Sendable, Equatable {
    case done
    case refused
    case names([String?])
  }

  /// The keys of all entries.
  private static let keys: [StoreKey] = ["1", "2"]

  /// The results of two programs that write names: one order explains which of them the index refuses.
  @Test func `a unique key has one owner`() async throws {
    try await runSchedules("a unique index") { context in
      let bytes = context.slowStore()
      // Two objects, as two programs have.
      let programs = [try await Self.open(bytes), try await Self.open(bytes)]
      let log = OperationLog<Operation, Result>()
      try await concurrently(3) { task in
        let users = programs[task % 2]
        var generator = context.generator("writer \(task)")
        for _ in 0..<4 {
          await context.pause(upTo: 2, &generator)
          let operation = Self.operation(&generator)
          try await log.perform(operation) {
            do {
              return try await Self.perform(operation, on: users)
            } catch StoreError.Code.notUnique {
              return .refused
            }
          }
        }
      }
      try await log.perform(.read) { try await Self.perform(.read, on: programs[0]) }
      try log.check(from: [nil, nil], Self.step)
      for users in programs { try await Self.check(users) }
    }
  }

  private static func operation(_ generator: inout SeededGenerator) -> Operation {
    func name() -> String { ["a", "b", "c"].randomElement(using: &generator) ?? "a" }
    let key = keys.randomElement(using: &generator) ?? "1"
    switch Int.random(in: 0..<10, using: &generator) {
    case 0..<4: return .insert(key: key, name: name())
    case 4: return .set(name(), name())
    case 5: return .exchange
    case 6...7: return .remove(key)
    case 8: return .removeAll
    default: return .read
    }
  }

  private static func perform(_ operation: Operation, on users: Users) async throws -> Result {
    switch operation {
    case .insert(let key, let name):
      try await users.setValue(User(name: name, team: 1), forKey: key)
    case .set(let first, let second):
      try await users.apply([.set("1", User(name: first, team: 2)), .set("2", User(name: second, team: 3))])
    case .exchange:
      try await users.update(keys) { slots in
        let first = slots[0]
        slots[0] = slots[1]
        slots[1] = first
      }
    case .remove(let key): try await users.removeValue(forKey: key)
    // Not the range of all keys, which has a way of its own.
    case .removeAll: try await users.apply([.removeAll("0"..<"9")])
    case .read: return .names(try await users.values(forKeys: keys).map { $0?.name })
    }
    return .done
  }

  private static func step(_ names: inout [String?], _ operation: Operation) -> Result {
    var next = names
    switch operation {
    case .insert(let key, let name): next[key == "1" ? 0 : 1] = name
    case .set(let first, let second): next = [first, second]
    case .exchange: next = [names[1], names[0]]
    case .remove(let key): next[key == "1" ? 0 : 1] = nil
    case .removeAll: next = [nil, nil]
    case .read: return .names(names)
    }
    if let first = next[0], first == next[1] { return .refused }
    names = next
    return .done
  }

  // MARK: Queries

  /// A query beside writers returns only entries that have the index key, and each entry that has it all the time.
  @Test func `queries agree with values`() async throws {
    try await runSchedules("queries of an index") { context in
      let bytes = context.slowStore()
      let programs = [try await Self.open(bytes), try await Self.open(bytes)]
      // Those of team 1 keep it. The others move between 0 and 2.
      try await programs[0].apply(
        ChangeBatch((0..<6).map { .set(StoreKey("\($0)"), User(name: "\($0)", team: $0.isMultiple(of: 2) ? 1 : 0)) }))
      try await concurrently(3) { task in
        var generator = context.generator("task \(task)")
        for number in 0..<4 {
          await context.pause(upTo: 2, &generator)
          if task < 2 {
            // Each writer has its own entry, and changes one that keeps its team in the same batch.
            let (own, kept) = (2 * task + 1, 2 * task)
            try await programs[task].apply([
              .set(StoreKey("\(own)"), User(name: "\(own)", team: number.isMultiple(of: 2) ? 2 : 0)),
              .set(StoreKey("\(kept)"), User(name: "\(kept) \(number)", team: 1)),
            ])
          } else {
            let team = Int.random(in: 0...2, using: &generator)
            let found = try await programs[number % 2].entries(
              where: Self.byTeam, in: .prefix(components: team), limit: .max)
            guard found.allSatisfy({ $0.value.team == team }), team != 1 || found.map(\.key) == ["0", "2", "4"] else {
              throw Wrong("\(found) in team \(team)")
            }
          }
        }
      }
      for users in programs { try await Self.check(users) }
    }
  }

  /// Two programs complete a new index while both write.
  @Test func `a rebuild misses no write`() async throws {
    // A rebuild had read a list that another one then removed with the former indexes, and left its entry out.
    try await runSchedules("rebuilding an index", share: 0.25, regressions: ["160"]) { context in
      let bytes = context.slowStore()
      // More than the rebuild reads in one step.
      let view = bytes.typed(User.self, prefix: "v/", codec: .cbor(User.self))
      try await view.apply(ChangeBatch((100..<230).map { .set(StoreKey("\($0)"), User(name: "\($0)", team: $0 % 3)) }))
      let programs = [try await Self.open(bytes), try await Self.open(bytes)]
      try await concurrently(4) { task in
        let users = programs[task % 2]
        var generator = context.generator("task \(task)")
        if task < 2 {
          return _ = try await users.rebuildIndexes(fromScratch: task == 1 && Bool.random(using: &generator))
        }
        for number in 0..<5 {
          await context.pause(upTo: 3, &generator)
          // Each writer has its own half of the names.
          let key = StoreKey("\(Int.random(in: 50...114, using: &generator) * 2 + task % 2)")
          switch Int.random(in: 0..<4, using: &generator) {
          case 0: try await users.removeValue(forKey: key)
          case 1: try await users.update(key) { $0?.team += 1 }
          case 2: try await users.apply([.removeAll(.only(key))])
          default: try await users.setValue(User(name: "\(task) \(number)", team: number), forKey: key)
          }
        }
      }
      guard try await programs[0].incompleteIndexes().isEmpty else { throw Wrong("an index is not complete") }
      for users in programs { try await Self.check(users) }
    }
  }
}
