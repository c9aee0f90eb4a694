import Foundation
import Larder
import LarderCBOR
import LarderTesting
import TestSupport
import Testing

@testable import LarderCoordination

/// The work of one of the processes of a round, and the check of what all of them have left.
///
/// The processes share a store, and a folder with files for effects outside of it. Leases have 300 milliseconds.
struct ProcessRound: Sendable {
  static let lease = Duration.milliseconds(300)
  static let limit = RateLimit(20, per: .seconds(1), burst: 10)
  static let configuration = StoreLockConfiguration(lease: lease, pollInterval: .milliseconds(30))

  let store: AnyDataStore<[UInt8]>
  let folder: String
  /// The number of the process.
  let number: Int
  /// The clock of the rate limit.
  let time: SharedClock
  let duration: Duration

  // MARK: Work

  /// Works for the duration of the round.
  func work() async throws {
    let end = ContinuousClock.now + duration
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await lock(until: end) }
      group.addTask { try await lead(until: end) }
      group.addTask { try await limit(until: end) }
      group.addTask { try await perform(until: end) }
      group.addTask { try await performOutside(.refuse, until: end) }
      group.addTask { try await performOutside(.runAgain, until: end) }
      try await group.waitForAll()
    }
  }

  private func locks() throws -> StoreLock {
    try StoreLock(store, prefix: "locks/", configuration: Self.configuration)
  }

  /// Calls a closure until the end, whatever errors of a store out of reach it throws.
  ///
  /// - Parameter body: A closure that returns whether it is to be called again.
  private func work(
    until end: ContinuousClock.Instant, _ body: () async throws -> Bool
  ) async throws {
    while ContinuousClock.now < end {
      do {
        guard try await body() else { return }
      } catch StoreError.Code.lockLost {
        continue
      } catch let error as StoreError where error.isRetryable || error.outcome == .unknown {
        try await Task.sleep(for: .milliseconds(10))
      }
    }
  }

  private func lock(until end: ContinuousClock.Instant) async throws {
    let locks = try locks()
    try await work(until: end) {
      try await locks.withLock("lock") { try await write($0, under: locks) }
      return true
    }
  }

  private func lead(until end: ContinuousClock.Instant) async throws {
    let election = LeaderElection(try locks(), name: "leader")
    try await work(until: end) {
      for try await term in election.terms {
        do {
          try await term.run { try await write($0, under: election.locks) }
        } catch StoreError.Code.lockLost {}
        if ContinuousClock.now >= end { return false }
      }
      return true
    }
  }

  /// Announces a token, and makes a few fenced writes.
  ///
  /// A write that lands after a greater token was announced is counted. It must be impossible, because that token was issued
  /// before.
  private func write(_ token: FencingToken, under locks: StoreLock) async throws {
    let audit = StoreKey("audit/").appending(token.name)
    try await store.update(audit) { bytes in
      var record = Audit(bytes)
      record.announced = max(record.announced, token.number)
      bytes = record.bytes
    }
    for _ in 0..<Int.random(in: 1...5) {
      try await locks.update([audit], requiring: token) { slots in
        var record = Audit(slots[0])
        record.writes += 1
        if record.announced > token.number { record.violations += 1 }
        slots[0] = record.bytes
      }
      do {
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...20)))
      } catch {
        // A holder that ignores its cancellation.
      }
    }
  }

  private func limit(until end: ContinuousClock.Instant) async throws {
    let limiter = try RateLimiter(store, prefix: "limits/", limit: Self.limit, time: time)
    let file = try Lines(folder + "/starts-\(number)")
    try await work(until: end) {
      let before = SteadyTime.now
      let decision = try await limiter.take(forKey: "all")
      if decision.isGranted { file.append("\(before) \(SteadyTime.now)") }
      try await Task.sleep(for: decision.retryAfter)
      return true
    }
  }

  private func keys(_ prefix: StoreKey, _ interruptions: InterruptionPolicy) throws -> IdempotencyKeys<Int> {
    try IdempotencyKeys(
      store, prefix: prefix, codec: .cbor(), interruptions: interruptions, configuration: Self.configuration)
  }

  /// Requests whose effects are in the store.
  private func perform(until end: ContinuousClock.Instant) async throws {
    let keys = try keys("requests/", .refuse)
    var request = 0
    try await work(until: end) {
      // Repeated after an error, so that a commit whose outcome is unknown does not count twice.
      let effect = StoreKey("effects/\(request)")
      try await store.transaction { tx in
        .commit(
          try await tx.perform(StoreKey("\(request)"), fingerprint: [1], with: keys) {
            let count = try await tx.value(forKey: effect)?.first ?? 0
            try tx.setValue([count + 1], forKey: effect)
            return request
          })
      }
      request += 1
      try await Task.sleep(for: .milliseconds(5))
      return true
    }
  }

  /// Requests whose effects are lines of a file.
  private func performOutside(_ interruptions: InterruptionPolicy, until end: ContinuousClock.Instant) async throws {
    let keys = try keys(StoreKey("outside-\(interruptions)/"), interruptions)
    let file = try Lines(folder + "/\(interruptions)-\(number)")
    var request = 0
    try await work(until: end) {
      defer { request += 1 }
      do {
        _ = try await keys.perform(StoreKey("\(request)"), fingerprint: [1]) { [request] in
          file.append("\(request)")
          try await Task.sleep(for: .milliseconds(5))
          return request
        }
      } catch StoreError.Code.interrupted where interruptions == .refuse {}
      return true
    }
  }

  // MARK: Check

  /// Checks what the processes have left, after all of them have ended.
  ///
  /// - Parameters:
  ///   - outages: The times in which processes may have been held up.
  ///   - uncounted: The number of starts that processes may have got without noting them.
  func check(outages: [Outage], uncounted: Int) async throws -> (problems: [String], share: RateShare) {
    var problems: [String] = []
    let locks = try locks()
    for name: StoreKey in ["lock", "leader"] {
      let audit = Audit(try await store.value(forKey: StoreKey("audit/").appending(name)))
      if audit.violations > 0 {
        problems.append("\(audit.violations) of \(audit.writes) writes under \(name) were late")
      }
      if audit.writes == 0 { problems.append("no process wrote under \(name)") }
      // No lock is lost forever.
      let start = ContinuousClock.now
      let number = try await locks.withLock(name) { $0.number }
      let waited = ContinuousClock.now - start
      if waited > Self.lease * 200 { problems.append("\(name) was free after \(waited)") }
      if number <= audit.announced { problems.append("the token \(number) of \(name) was issued again") }
    }
    var effects = 0
    for try await entry in store.entries(in: .prefix("effects/")) {
      effects += 1
      if entry.value != [1] { problems.append("the effect \(entry.key) happened \(entry.value) times") }
    }
    if effects == 0 { problems.append("no effect happened in a transaction") }
    var lines: [String: Int] = [:]
    for line in try Lines.all(in: folder, "refuse-") { lines[line, default: 0] += 1 }
    if lines.isEmpty { problems.append("no effect happened outside") }
    for (line, count) in lines where count > 1 { problems.append("the effect \(line) happened \(count) times") }
    let repeated = Set(try Lines.all(in: folder, "runAgain-"))
    let outcomes = KeyPrefix("outside-runAgain/o")
    for try await entry in store.entries(in: outcomes.storedRange(.all)) {
      // A request that was interrupted, and not repeated, has no outcome.
      guard try IdempotencyRecord(record: entry.value).outcome != nil else { continue }
      let request = outcomes.key(ofStored: entry.key)?.string ?? ""
      if !repeated.contains(request) { problems.append("the effect \(request) never happened") }
    }
    let (excess, share) = try checkRate(outages, uncounted)
    return (problems + excess, share)
  }

  private func checkRate(_ outages: [Outage], _ uncounted: Int) throws -> ([String], RateShare) {
    let starts = try Lines.all(in: folder, "starts-").map { line in
      line.split(separator: " ").compactMap { Int64($0) }
    }.filter { $0.count == 2 }.sorted { $0[1] < $1[1] }
    let rate = Double(Self.limit.count) / (Self.limit.interval / .nanoseconds(1))
    for first in starts.indices {
      // The starts that certainly lie between the first one's request and a later one's answer.
      let begin = starts[first][0]
      for last in starts.indices[first...] {
        let count = starts[first...last].count { $0[0] >= begin }
        let allowed = Double(Self.limit.burst) + rate * Double(starts[last][1] - begin)
        if Double(count) > allowed + 1e-6 { return (["\(count) starts in a window of \(allowed)"], RateShare()) }
      }
    }
    guard let begin = starts.first?[0], let end = starts.last?[1] else {
      return (["nothing has started"], RateShare())
    }
    // The starts that become available while the whole burst is available get lost. That is allowed beside a fault.
    var (left, lost, time) = (Double(Self.limit.burst), 0.0, begin)
    for start in starts {
      left += rate * Double(start[1] - time)
      if outages.contains(where: { $0.start < start[1] && time < $0.end }) {
        lost += max(0, left - Double(Self.limit.burst))
      }
      left = min(left, Double(Self.limit.burst)) - 1
      time = start[1]
    }
    let available = Double(Self.limit.burst) + rate * Double(end - begin) - lost
    let share = RateShare(reached: Double(starts.count + uncounted), available: available)
    let isEnough = share.reached >= 0.4 * available
    return (isEnough ? [] : ["only \(share.reached) of \(available) starts were reached, \(lost) were lost"], share)
  }
}

/// The starts that rounds have reached of those that a rate limit permits.
///
/// A busy machine can keep all processes from asking for so long that starts get lost. A few rounds say nothing about that, so
/// each round must reach 40 percent, and a long run 95.
struct RateShare {
  var reached = 0.0
  var available = 0.0

  mutating func add(_ other: RateShare) {
    reached += other.reached
    available += other.available
  }

  /// Prints the share of a run, and checks it.
  func check(_ name: String) {
    print("\(name) reached \(reached / available) of the rate limit")
    #expect(TestDepth.isShort || reached >= 0.95 * available, "\(name)")
  }
}

/// A time in which a fault can hold up processes, by ``SteadyTime``.
struct Outage: Sendable {
  let start: Int64
  let end: Int64

  /// Runs a fault.
  ///
  /// - Parameters:
  ///   - recovery: The time that it takes to reach the store again, such as by a repeated packet.
  ///   - fault: A closure that returns when the fault is over.
  static func during(recovery: Duration, _ fault: () async throws -> Void) async throws -> Outage {
    let start = SteadyTime.now
    try await fault()
    return Outage(start: start, end: SteadyTime.now + Int64(recovery / .nanoseconds(1)))
  }
}

/// The announced token and the writes of a lock.
private struct Audit {
  var announced: UInt64 = 0
  var writes: UInt64 = 0
  var violations: UInt64 = 0

  init(_ bytes: [UInt8]?) {
    guard let bytes, bytes.count == 24 else { return }
    let numbers = stride(from: 0, to: 24, by: 8).map { bytes[$0..<$0 + 8].reduce(0) { $0 << 8 | UInt64($1) } }
    (announced, writes, violations) = (numbers[0], numbers[1], numbers[2])
  }

  var bytes: [UInt8] {
    [announced, writes, violations].flatMap { number in withUnsafeBytes(of: number.bigEndian) { Array($0) } }
  }
}

/// The clock that all processes of the machine read.
private enum SteadyTime {
  static var now: Int64 { ElapsedTime(by: ContinuousClock()).nanoseconds }
}

/// A file of lines, each of which is written whole.
private final class Lines: Sendable {
  private let descriptor: Int32

  init(_ path: String) throws {
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
  }

  deinit { close(descriptor) }

  func append(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    precondition(write(descriptor, bytes, bytes.count) == bytes.count)
  }

  /// Returns the lines of all files whose names have a prefix.
  static func all(in folder: String, _ prefix: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix(prefix) }.flatMap { name in
      try String(contentsOfFile: folder + "/" + name, encoding: .utf8).split(separator: "\n").map(String.init)
    }
  }
}
