import ArgumentParser
import Foundation
import Larder
import LarderExpiry
import StoreAccess

/// `larder watch`.
struct WatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Print the changes that other programs make to a store.",
    discussion: """
      Prints a line {"key":...,"change":"set","value":...} or {"key":...,"change":"removed"} for each entry that \
      changed within all the given bounds. A value that cannot be decoded is replaced by "message". An entry that was \
      changed several times in a moment, or back to its earlier value, has one line or none. An entry that expires is \
      removed.

      Requires a store that several programs can have open, and that reports the commits of all of them. A postgres: \
      store does if it was created with reportsChanges. The range is read again after each commit of another \
      program. A range of more than \(RangeWatch.maximumCount) entries is not compared: a commit then prints a line \
      {"from":...,"upTo":...,"change":"range changed"}, in which a missing bound is null.

      Ends when the reader of its output has gone, and with Ctrl-C or SIGTERM, with the exit code of the signal. Ends with an \
      error if the files of the store are moved, removed or replaced.

        larder watch lmdb:users
        larder watch lmdb:shop#orders --prefix 2026-11- --initial
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @OptionGroup var range: RangeOptions
  @Flag(help: "First print a line for each entry that the store has already.") var initial = false

  func validate() throws {
    guard access.access != .immutable else {
      throw ValidationError("--immutable is for stores that do not change; omit it")
    }
  }

  func run() async throws {
    let range = try range.range()
    do {
      let signal = try await StoreSession.runEncoded(store.target, access: access.storeAccess) { store, output in
        let observation = try Self.observation(of: store)
        return try await watch(store, observation, range, printingTo: output)
      }
      if let signal { throw ExitCode(SignalHandler.exitCode(of: signal)) }
    } catch let error as StoreError where error.code == .locked && error.operation == .open {
      throw CommandFailure(error, hint: "A store that one program at a time can have open cannot be watched.")
    }
  }

  /// Returns a store as one that reports the changes of other programs.
  ///
  /// - Throws: ``CommandFailure`` if it cannot.
  private static func observation(of store: EncodedStore) throws -> any ObservableStore<[UInt8]> {
    let information = store.store.information
    let advice =
      "Watch a store that reports all changes, such as lmdb: or one of PostgreSQL that was created with reportsChanges, or "
      + "observe it in the program that has it open."
    guard information.sharing != .exclusive else {
      throw CommandFailure(
        .usage, "\(information.name) is exclusive: no other program can change it while it is watched", advice: advice)
    }
    guard let observation = store.observation, information.reportsAllCommits else {
      throw CommandFailure(.usage, "\(information.name) does not report the changes of other programs", advice: advice)
    }
    return observation
  }

  /// Prints the changes of a range until a signal arrives, or the reader of the output has gone.
  ///
  /// - Returns: The signal, or `nil` if there wasn't one.
  private func watch(
    _ store: EncodedStore, _ observation: any ObservableStore<[UInt8]>, _ range: KeyRange,
    printingTo output: ByteOutput
  ) async throws -> Int32? {
    // One pending wake is enough, because each reading finds all changes before it.
    let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let arrived = Locked<Int32?>(nil)
    let signals = SignalHandler([SIGINT, SIGTERM]) { number in
      let isFirst = arrived.withLock { arrived in
        defer { arrived = number }
        return arrived == nil
      }
      // The first signal may wait for output that nothing reads, so the second one does not wait.
      guard isFirst else { _exit(SignalHandler.exitCode(of: number)) }
      wake.finish()
    }
    defer { withExtendedLifetime(signals) {} }
    Thread.detachNewThread {
      // If the pipe cannot be watched, the next line finds that its reader has gone.
      guard (try? Descriptor.standardOutput.waitUntilReaderIsGone()) != nil else { return }
      wake.finish()
    }
    let hasEnded = Locked(false)
    let observing = observation.observe(range) { event in
      guard case .closed = event else { return _ = wake.yield() }
      hasEnded.withLock { $0 = true }
      wake.finish()
    }
    defer { observing.cancel() }

    var watch = RangeWatch(of: range, in: store, output: output, printsFirst: initial)
    try await watch.read()
    var timer = Self.timer(waking: wake, at: watch.nextExpiry)
    defer { timer?.cancel() }
    for await _ in wakes {
      timer?.cancel()
      try await watch.read()
      timer = Self.timer(waking: wake, at: watch.nextExpiry)
    }
    let signal = arrived.withLock { $0 }
    guard signal == nil, hasEnded.withLock({ $0 }) else { return signal }
    throw StoreError(
      .conflict, during: .observe, store: observation.information.name,
      message:
        "the files of the store were moved, removed or replaced while it was watched; watch the store again once "
        + "it is in place")
  }

  /// Returns a task that wakes the watch at the moment when an entry expires, or `nil` if none does.
  private static func timer(waking wake: AsyncStream<Void>.Continuation, at date: Date?) -> Task<Void, any Error>? {
    date.map { date in
      Task {
        // Not longer than a minute, because the clock of the deadline may be set forward.
        try await Task.sleep(for: .seconds(min(max(date.timeIntervalSinceNow, 0.001), 60)))
        wake.yield()
      }
    }
  }
}

/// A change that `watch` prints.
enum ObservedChange: Equatable {
  /// An entry has a new value.
  case set(StoreKey, JSONText)
  /// An entry has a new value that cannot be decoded, for the reason in the message.
  case setUnreadable(StoreKey, String)
  /// An entry was removed or has expired.
  case removed(StoreKey)
  /// Any entries of a range may have changed.
  case range(KeyRange)
}

/// Prints how the entries of a range differ from those of the last reading.
struct RangeWatch {
  /// The maximum number of entries that are compared, including expired ones.
  static let maximumCount = 100_000

  /// The number of entries that are read, and whose changes are printed, together.
  private static let pageSize = 256

  /// An entry as it was read.
  private struct Seen {
    let key: StoreKey
    /// The digest of the encoded value.
    let stored: Int
    /// The digest of the value as it is printed, or `nil` if the entry has expired.
    var shown: Int?
    let deadline: Date?
  }

  private enum State {
    case unread
    case entries([Seen])
    case tooMany
  }

  private let range: KeyRange
  private let store: EncodedStore
  private let output: ByteOutput
  private let printsFirst: Bool
  private let maximumCount: Int
  private var state = State.unread

  /// The moment when the next entry expires, or `nil` if none does.
  private(set) var nextExpiry: Date?

  /// Creates a watch that has not read anything.
  ///
  /// - Parameters:
  ///   - range: The range of keys.
  ///   - store: The store.
  ///   - output: The output for the lines of the changes.
  ///   - printsFirst: A Boolean value that indicates whether the first reading prints all entries.
  ///   - maximumCount: The maximum number of entries that are compared. Defaults to ``RangeWatch/maximumCount``.
  init(
    of range: KeyRange, in store: EncodedStore, output: ByteOutput, printsFirst: Bool,
    maximumCount: Int = RangeWatch.maximumCount
  ) {
    self.range = range
    self.store = store
    self.output = output
    self.printsFirst = printsFirst
    self.maximumCount = maximumCount
  }

  /// Reads the range, prints the changes since the last reading, and flushes the output.
  ///
  /// - Parameter now: The time. Defaults to the current one.
  /// - Throws: The errors of the store; ``BrokenOutput``.
  mutating func read(now: Date = .now) async throws {
    nextExpiry = nil
    let (previous, prints): ([Seen], Bool) =
      switch state {
      case .unread: ([], printsFirst)
      case .entries(let entries): (entries, true)
      case .tooMany: ([], false)
      }
    let entries = try await entries(changing: previous, prints: prints, now)
    if case .tooMany = state {
      try print(.range(range))
    } else if entries == nil {
      if prints { try print(.range(range)) }
      Diagnostics.writeLine(
        "the range has more than \(maximumCount) entries, which are not compared; give a narrower range to see them")
    }
    state = entries.map(State.entries) ?? .tooMany
    try output.flush()
  }

  /// Reads the entries, and prints how they differ from earlier ones.
  ///
  /// - Returns: The entries, or `nil` if there are too many.
  private mutating func entries(changing previous: [Seen], prints: Bool, _ now: Date) async throws -> [Seen]? {
    guard try await store.store.count(in: range) <= maximumCount else { return nil }
    var previous = previous[...]
    var entries: [Seen] = []
    for try await page in store.store.pages(of: range, size: RangeWatch.pageSize) {
      for entry in page.entries {
        while let gone = previous.first, gone.key < entry.key {
          previous.removeFirst()
          if prints, gone.shown != nil { try print(.removed(gone.key)) }
        }
        let before = previous.first?.key == entry.key ? previous.removeFirst() : nil
        let (seen, change) = examine(entry, before, now)
        entries.append(seen)
        if prints, let change { try print(change) }
      }
      guard entries.count <= maximumCount else { return nil }
      try output.flush()
    }
    for gone in previous where prints && gone.shown != nil { try print(.removed(gone.key)) }
    return entries
  }

  /// Compares an entry with the earlier one of its key.
  private mutating func examine(
    _ entry: StoreEntry<[UInt8]>, _ before: Seen?, _ now: Date
  ) -> (seen: Seen, change: ObservedChange?) {
    let (key, stored) = (entry.key, RangeWatch.digest(of: entry.value))
    var change: ObservedChange?
    var seen: Seen
    if let before, before.stored == stored {
      seen = before
    } else {
      do {
        let value = try store.value(of: entry)
        seen = Seen(
          key: key, stored: stored, shown: RangeWatch.digest(of: value.value.bytes), deadline: value.deadline?.date)
        change = .set(key, value.value)
      } catch {
        seen = Seen(key: key, stored: stored, shown: stored, deadline: nil)
        change = .setUnreadable(key, "the value could not be decoded (\(error))")
      }
    }
    if let deadline = seen.deadline {
      if deadline <= now {
        seen.shown = nil
        change = .removed(key)
      } else {
        nextExpiry = min(nextExpiry ?? deadline, deadline)
      }
    }
    // A deadline that moves is no change of the value.
    return (seen, seen.shown == before?.shown ? nil : change)
  }

  private func print(_ change: ObservedChange) throws {
    try output.writeLine { EntryLine.append(change, to: &$0) }
  }

  private static func digest(of bytes: [UInt8]) -> Int {
    var hasher = Hasher()
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    return hasher.finalize()
  }
}
