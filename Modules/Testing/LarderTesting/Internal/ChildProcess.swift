import Foundation
import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The process that a suite has started: it does as ordered, and reports.
struct ChildProcess: Sendable {
  private let order: ChildOrder
  private let location: ConformanceLocation
  /// The process that has started this one.
  private let parent = getppid()

  init(_ order: ChildOrder) {
    self.order = order
    location = ConformanceLocation(existingFolder: order.folder)
  }

  /// Ends this process as hard as can be.
  static func die() {
    kill(getpid(), SIGKILL)
  }

  /// Reports something to the other process, and dies if that cannot be done.
  func report(_ report: ChildReport) {
    do {
      let line = try JSONEncoder().encode(report) + [UInt8(ascii: "\n")]
      let handle = try FileHandle(forWritingTo: URL(filePath: order.exchange + "/reports"))
      // At once: what was written outlives this process.
      try handle.seekToEnd()
      try handle.write(contentsOf: line)
      try handle.close()
    } catch {
      ChildProcess.die()
    }
  }

  /// Waits until the other process takes a step; dies if that has ended, or wants this one to.
  private func wait(for step: ChildStep) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while !FileManager.default.fileExists(atPath: "\(order.exchange)/\(step)") {
      let isOver = FileManager.default.fileExists(atPath: "\(order.exchange)/\(ChildStep.end)")
      if isOver || getppid() != parent || ContinuousClock.now > end { ChildProcess.die() }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  // MARK: The work

  /// Opens the store while the other process has it open, and again when that has closed it if the first is refused.
  func share<Store: DataStore>(
    _ open: @Sendable (ConformanceLocation) async throws -> Store
  ) async throws where Store.Value == SampleValue? {
    let store: Store
    do {
      store = try await open(location)
    } catch StoreError.Code.locked {
      report(.locked)
      try await wait(for: .isClosed)
      store = try await open(location)
    }
    try await report(.holds(texts(in: store)))
    try await wait(for: .look)
    try await store.setValue(SampleValue("written"), forKey: "child")
    try await store.synchronize()
    try await report(.holds(texts(in: store)))
    // It dies with the store open: what it has locked must be free then.
    try await wait(for: .end)
  }

  private func texts<Store: DataStore>(in store: Store) async throws -> [String: String]
  where Store.Value == SampleValue? {
    let entries = try await store.entries(in: .all, limit: .max)
    return Dictionary(entries.map { ($0.key.description, $0.value?.text ?? "nil") }) { $1 }
  }

  /// Writes one batch after another, and reports each, until it is killed.
  func write<Store: DataStore>(
    _ plan: ChildPlan, _ open: @Sendable (ConformanceLocation) async throws -> Store
  ) async throws where Store.Value == SampleValue? {
    let store = try await open(location)
    if case .beyond(let size) = plan.death { ChildProcess.die(writingBeyond: size) }
    for number in plan.first..<plan.first + ChildPlan.count {
      do {
        try await ChildBatch(number: number, seed: plan.seed).write(to: store)
        report(.acknowledged(number))
        if case .after(let delay) = plan.death, number == plan.first { ChildProcess.die(after: delay) }
        // Elsewhere a write that has returned needs no synchronization to outlive the process.
        guard store.information.acknowledgement == .accepted, number.isMultiple(of: 4) else { continue }
        try await store.synchronize()
        report(.synchronized(number))
      } catch {
        // Threads that keep the signal from them meet an error in its place, in the midst of the same write.
        if case .beyond = plan.death { return }
        throw error
      }
    }
  }

  private static func die(after microseconds: UInt32) {
    Thread.detachNewThread {
      usleep(microseconds)
      ChildProcess.die()
    }
  }

  /// Lets the system cut short the write that makes a file longer than some bytes, and end this process there.
  private static func die(writingBeyond size: UInt64) {
    signal(SIGXFSZ) { _ in kill(getpid(), SIGKILL) }
    var limit = rlimit(rlim_cur: rlim_t(size), rlim_max: rlim_t(size))
    #if canImport(Glibc)
    let code = setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    #else
    let code = setrlimit(RLIMIT_FSIZE, &limit)
    #endif
    if code != 0 { ChildProcess.die() }
  }
}
