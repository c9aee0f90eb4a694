#if LMDB
import Larder
import LarderIndexes
import LarderTesting
import TestSupport
import Testing

/// Random writes, after which indexes and values agree.
@Suite struct IndexHistoryTests {
  @Test func `random histories agree with a model`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "index histories")
    for round in 0..<ConformanceSuite.roundsOfProcess * 4 {
      let notes = try await openNotes(MemoryStore<[UInt8]>())
      var model: [StoreKey: Note] = [:]
      for _ in 0..<40 {
        let batch = IndexHistoryTests.batch(using: &generator)
        let after = IndexHistoryTests.model(model, after: batch)
        let isUnique = Set(after.values.map(\.title)).count == after.count
        do {
          if batch.changes.allSatisfy({ $0.key != nil }), Bool.random(using: &generator) {
            let keys = Array(Set(batch.changes.compactMap(\.key)))
            try await notes.update(keys) { slots in slots.assign(keys.map { after[$0] }) }
          } else {
            try await notes.apply(batch)
          }
          #expect(isUnique, "seed \(seed), round \(round)")
          model = after
        } catch StoreError.Code.notUnique {
          #expect(!isUnique, "seed \(seed), round \(round)")
        }
      }
      let entries = try await notes.entries(in: .all, limit: .max)
      #expect(Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) }) == model)
      try await notes.expectConsistent("seed \(seed), round \(round)")
    }
  }

  private static func batch(using generator: inout SeededGenerator) -> ChangeBatch<Note> {
    var batch = ChangeBatch<Note>()
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      let number = Int.random(in: 0..<12, using: &generator)
      switch Int.random(in: 0..<20, using: &generator) {
      case 0: batch.removeAll(in: "k\(number)"..<"k\(number + 3)")
      case 1: batch.removeAll()
      case 2...5: batch.removeValue(forKey: "k\(number)")
      default: batch.setValue(.random(using: &generator), forKey: "k\(number)")
      }
    }
    return batch
  }

  private static func model(_ model: [StoreKey: Note], after batch: ChangeBatch<Note>) -> [StoreKey: Note] {
    var model = model
    for change in batch.changes {
      switch change {
      case .set(let key, let note): model[key] = note
      case .remove(let key): model[key] = nil
      case .removeAll(let range): model = model.filter { !range.contains($0.key) }
      }
    }
    return model
  }

  /// Two objects over one base, as in two processes, with writes that overlap and fail.
  @Test func `concurrent writers of two programs never divide`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "concurrent index writers")
    let faults: [(StoreFault, StoreOperation?, Double)] = [
      (.yields(upTo: 3), nil, 1), (.error(.ioFailed), .update, 0.05), (.error(.ioFailed, .after), .update, 0.05),
      (.error(.full), .values, 0.02),
    ]
    for round in 0..<ConformanceSuite.roundsOfProcess {
      let memory = MemoryStore<[UInt8]>()
      let base = memory.faulty()
      let programs = [try await openNotes(base), try await openNotes(base)]
      for (fault, operation, probability) in faults { base.schedule(fault, on: operation, probability: probability) }
      let seeds = (0..<6).map { _ in generator.next() }
      await withTaskGroup(of: Void.self) { group in
        for (task, seed) in seeds.enumerated() {
          group.addTask {
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<15 {
              let batch = IndexHistoryTests.batch(using: &generator)
              do {
                try await programs[task % 2].apply(batch)
              } catch {
                let code = (error as? StoreError)?.code
                #expect([.notUnique, .ioFailed, .full].contains(code), "\(error)")
              }
            }
          }
        }
      }
      try await openNotes(memory).expectConsistent("seed \(seed), round \(round)")
    }
  }

  /// Concurrent histories on two objects have an explanation as a sequence of writes, removals of ranges included.
  @Test func `two programs are one store`() async throws {
    let trial = HistoryTrial("two IndexedStores over one base", lacking: .persistence) { _ in
      var plan = FaultPlan()
      plan.schedule(.yields(upTo: 2), probability: 1)
      return try await TwoPrograms(MemoryStore<[UInt8]>().faulty(plan: plan))
    }
    try await trial.runConcurrently(
      rounds: ConformanceSuite.roundsOfProcess * 5, seed: SeededGenerator.seedOfProcess, tasks: 4)
  }
}

/// A store that passes its calls to two indexed stores over one base, in turn.
private final class TwoPrograms<Base: DataStore>: DataStore where Base.Value == [UInt8] {
  private let programs: [IndexedStore<Base, Int>]
  private let calls = Locked(0)

  init(_ base: Base) async throws {
    let index = StoreIndex<Int>("parity") { key, number in [[number % 2], [key.bytes]] }
    programs = [
      try await base.indexed(by: [index], codec: .json(Int.self)),
      try await base.indexed(by: [index], codec: .json(Int.self)),
    ]
  }

  private var program: IndexedStore<Base, Int> {
    programs[
      calls.withLock { calls in
        calls += 1
        return calls % 2
      }]
  }

  var information: StoreInformation { programs[0].information }

  func value(forKey key: StoreKey) async throws -> Int? { try await program.value(forKey: key) }
  func values(forKeys keys: [StoreKey]) async throws -> [Int?] { try await program.values(forKeys: keys) }
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Int>] {
    try await program.entries(in: range, limit: limit, order: order)
  }
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await program.keys(in: range, limit: limit, order: order)
  }
  func count(in range: KeyRange) async throws -> Int { try await program.count(in: range) }
  func apply(_ changes: ChangeBatch<Int>) async throws { try await program.apply(changes) }
  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
  ) async throws -> Result { try await program.update(deciding: keys, body) }
  func synchronize() async throws { try await program.synchronize() }
  func close() async throws {
    #expect(try await programs[0].verifyIndexes().findings == [])
    try await programs[0].close()
  }
}
#endif
