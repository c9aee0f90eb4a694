import Larder
import LarderMirror
import LarderTesting
import TestSupport
import Testing

/// A mirror in many schedules: repairs and exchanges of its stores race with writes.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct MirrorSchedules {
  private typealias Side = FaultyStore<MemoryStore<Int>>

  /// A mirror that moves to its second store, and is compared with it, before it closes.
  private struct MovingStore: ForwardingStore {
    typealias Value = Int

    let base: MirroredStore<Side, Side>
    let move: Task<Void, any Error>

    func forward<Result>(
      _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
    ) async throws -> Result {
      if operation == .close {
        try await move.value
        for side in [base.primary, base.secondary] { side.clearFaults() }
        try await base.repair()
        let sides = try [base.primary, base.secondary].map {
          try $0.base.entries(in: .all, limit: .max, order: .ascending)
        }
        guard sides[0] == sides[1], base.isSynchronized else { throw Wrong("the sides differ: \(sides)") }
      }
      return try await body()
    }
  }

  /// One order, whatever store is read, explains all results, and both have the same entries at the end.
  ///
  /// - Parameter errorProbability: The probability of an error before or after an operation of either store.
  @Test(arguments: [0, 0.06]) func `a move loses no write`(_ errorProbability: Double) async throws {
    let moves = Shared(0)
    let hasRun = try await runSchedules("a mirror that moves, with \(errorProbability) errors") { context in
      let history = HistoryTrial("a mirror") { _ in
        let sides = [0, 1].map { context.slowStore(of: Int.self, number: $0) }
        // The secondary has entries that the primary lacks, and other values.
        try await sides[1].apply([.set("a", -1), .set("b", -2), .set("x", -3)])
        if errorProbability > 0 { for side in sides { side.fail(withProbability: errorProbability) } }
        let mirror = try MirroredStore(primary: sides[0], secondary: sides[1])
        let move = Task {
          for _ in 0..<4 {
            do {
              // In steps of one key.
              try await mirror.repair(batchSize: 1)
              try await mirror.promoteSecondary()
              moves.change { $0 += 1 }
            } catch let error as StoreError {
              // The stores may differ again, because of an error of one of them.
              guard errorProbability > 0, [.conflict, .ioFailed].contains(error.code) else { throw error }
            }
          }
        }
        return MovingStore(base: mirror, move: move)
      }
      try await history.runConcurrently(
        rounds: 1, seed: context.seed, tasks: 3, length: 5, mayFail: errorProbability > 0)
    }
    #expect(!hasRun || moves.value > 0)
  }

  /// A comparison beside writers finds no difference that is only a running write.
  @Test func `a running write is no difference`() async throws {
    try await runSchedules("comparing a mirror") { context in
      let mirror = try MirroredStore(
        primary: context.slowStore(of: Int.self), secondary: context.slowStore(of: Int.self, number: 1))
      try await concurrently(4) { task in
        if task == 3 {
          for _ in 0..<3 {
            try await mirror.forEachDifference { throw Wrong("\($0)") }
            await Task.yield()
          }
        } else {
          for number in 0..<4 {
            let key = StoreKey("\(number % 2)")
            if number == 3 {
              try await mirror.removeValue(forKey: key)
            } else {
              try await mirror.update(key) { $0 = ($0 ?? 0) + 1 }
            }
          }
        }
      }
      let sides = try [mirror.primary, mirror.secondary].map {
        try $0.base.entries(in: .all, limit: .max, order: .ascending)
      }
      guard sides[0] == sides[1] else { throw Wrong("the sides differ: \(sides)") }
    }
  }
}
