import ArgumentParser
import Foundation
import Larder
import LarderQueue

/// The endless work of a ``QueueWorker``, which enqueues and processes items in many tasks.
///
/// Before and after each operation it prints an unbuffered line with a word and the items.
struct QueueWork {
  /// The operation that a line reports.
  enum Word: String {
    case enqueues, hasEnqueued, acknowledges, hasAcknowledged
  }

  let queue: QueueStore<String>
  let prefix: String
  let seed: UInt64
  let producers: Int
  let consumers: Int

  /// Works until the process is killed.
  func run() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<producers {
        group.addTask { try await produce(as: number) }
      }
      for number in 0..<consumers {
        group.addTask {
          switch number % 3 {
          case 0: try await consumeOneByOne()
          case 1: try await consumeSequence(as: number)
          default: try await consumeBatches()
          }
        }
      }
      try await group.waitForAll()
    }
  }

  // MARK: Producers

  private func produce(as number: Int) async throws {
    var random = generator(number)
    for item in 0... {
      let names = (0..<Int.random(in: 1...3, using: &random)).map { "\(prefix)-\(number)-\(item)-\($0)" }
      try say(.enqueues, names)
      switch number % 3 {
      case 0:
        for name in names { try await queue.enqueue(name) }
      case 1:
        try await queue.enqueue(names.map { QueueInput($0, id: StoreKey($0)) })
      default:
        // Repeats the call, as a client does without an answer. The item can be acknowledged already.
        for name in names { try await queue.enqueue(name, id: StoreKey(name), after: .milliseconds(1)) }
        for name in names { try await queue.enqueue(name, id: StoreKey(name)) }
      }
      try say(.hasEnqueued, names)
    }
  }

  // MARK: Consumers

  private func consumeOneByOne() async throws {
    while true {
      let name = try await queue.withNext(lease: .seconds(30)) { delivery in
        try say(.acknowledges, [delivery.value])
        return delivery.value
      }
      try say(.hasAcknowledged, [name])
    }
  }

  private func consumeSequence(as number: Int) async throws {
    var random = generator(number + producers)
    for try await result in queue.deliveries(lease: .seconds(30)) {
      let delivery = try result.get()
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        try await queue.release(delivery.receipt, after: .milliseconds(2))
        continue
      case 1:
        try await queue.extend(delivery.receipt, lease: .seconds(60))
      default:
        break
      }
      try say(.acknowledges, [delivery.value])
      try await queue.acknowledge(delivery.receipt)
      try say(.hasAcknowledged, [delivery.value])
    }
  }

  private func consumeBatches() async throws {
    while true {
      let deliveries = try await queue.receive(max: 8, lease: .seconds(30))
      guard !deliveries.isEmpty else {
        try await Task.sleep(for: .milliseconds(1))
        continue
      }
      let names = deliveries.map(\.value)
      try say(.acknowledges, names)
      let stale = try await queue.acknowledge(deliveries.map(\.receipt))
      guard stale.isEmpty else { throw ExitCode.failure }
      try say(.hasAcknowledged, names)
    }
  }

  // MARK: Output

  private func say(_ word: Word, _ names: [String]) throws {
    // Writes in one call, so that lines do not mix. The content of a pipe outlives its writer.
    try FileHandle.standardOutput.write(contentsOf: Data("\(word.rawValue) \(names.joined(separator: " "))\n".utf8))
  }

  private func generator(_ number: Int) -> SplitMix {
    SplitMix(state: seed &+ UInt64(number) &* 0x1_0000_0001)
  }

  /// A generator that returns the same numbers for the same seed.
  private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var mixed = state
      mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
      mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
      return mixed ^ (mixed >> 31)
    }
  }
}
