import Larder
import LarderFiles

/// Reclaiming the space of old segments.
extension QueueLog {
  /// The maximum size of the records rewritten in one step, in bytes.
  ///
  /// Other calls wait for a step.
  private static let stepBytes = 256 << 10
  private static let stepLooks = 16_384
  /// The size after which rewritten records are synchronized, in bytes.
  private static let synchronizedBytes: Int64 = 2 << 20

  /// Returns whether ``reclaim(_:clockOffset:)`` can reclaim space.
  func needsReclaiming(_ ledger: inout QueueLedger) -> Bool {
    if hasRemovableLeftovers { return true }
    guard !isSealed else { return false }
    if let cleaning { return !cleaning.isRequested }
    return !olderSizes.isEmpty && (hasUnneededSegments(&ledger) || !targets(ledger).isEmpty)
  }

  private func hasUnneededSegments(_ ledger: inout QueueLedger) -> Bool {
    guard ledger.uses.mayHaveUnneeded else { return false }
    ledger.uses.mayHaveUnneeded = !ledger.uses.unneeded(among: olderSizes.keys.sorted(), keeping: withheld).isEmpty
    return ledger.uses.mayHaveUnneeded
  }

  /// Reclaims space in one step, from segments that are unneeded or hold little live data.
  ///
  /// - Parameters:
  ///   - ledger: The items of the queue.
  ///   - clockOffset: The difference added to times when they are written, in microseconds.
  /// - Returns: A Boolean value that indicates whether the step was useful.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func reclaim(_ ledger: inout QueueLedger, clockOffset: Int64) throws -> Bool {
    if hasRemovableLeftovers {
      removeLeftovers()
      return true
    }
    if cleaning == nil {
      if hasUnneededSegments(&ledger) {
        try beginSegment(&ledger, mayUseReserve: reserve.isSpent)
        removeLeftovers()
        return true
      }
      cleaning = Cleaning(targets: targets(ledger))
    }
    return try clean(&ledger, clockOffset: clockOffset)
  }

  /// Begins to rewrite the live data of all older segments.
  mutating func beginCompacting(_ ledger: inout QueueLedger) throws {
    if size > initialSize { try beginSegment(&ledger, mayUseReserve: true) }
    cleaning = Cleaning(targets: Set(olderSizes.keys), isRequested: true)
  }

  /// Rewrites a piece of the live data.
  ///
  /// After the last piece, the cleaned segments can be removed.
  ///
  /// - Returns: A Boolean value that indicates whether the step was useful; `false` if the cleaning is over and no
  ///   segment can be removed.
  /// - Throws: ``StoreError``; `FileError`. The cleaning is over in either case.
  @discardableResult
  mutating func clean(_ ledger: inout QueueLedger, clockOffset: Int64) throws -> Bool {
    guard var next = cleaning else { return false }
    do {
      if !isReady(for: ledger) { try beginSegment(&ledger, mayUseReserve: false) }
      let (records, covered) = ledger.nextSurvivors(of: &next, bytes: QueueLog.stepBytes, looks: QueueLog.stepLooks)
      try rewrite(records, &ledger, clockOffset: clockOffset)
      next.retained.formUnion(unreadable)
      for segment in covered { ledger.uses.moveGone(of: segment, to: number) }
      cleaning = next
      guard next.isOver else { return true }
      cleaning = nil
      ledger.uses.mayHaveUnneeded = true
      guard hasUnneededSegments(&ledger) else { return false }
      try beginSegment(&ledger, mayUseReserve: reserve.isSpent)
      return true
    } catch {
      cleaning = nil
      throw error
    }
  }

  private mutating func rewrite(_ records: [QueueRecord], _ ledger: inout QueueLedger, clockOffset: Int64) throws {
    guard !records.isEmpty else { return }
    var buffer = FrameBuffer()
    reset(&buffer, clockOffset: clockOffset)
    var written: [QueueRecord] = []
    for record in records {
      // Each record is a call of its own.
      buffer.beginCall()
      do throws(FileError) {
        written.append(try rewrite(record, into: &buffer))
      } catch {
        // An item that cannot be read stays where it is, and cleaning continues with the others.
        guard case .put(let state) = record, error.isDiskFailure || error.isMissing else { throw error }
        unreadable.insert(state.item.place.segment)
      }
    }
    guard !written.isEmpty else { return }
    buffer.finish()
    try append(buffer, mayUseReserve: false, isDurable: false)
    // In small portions, so that a full segment does not make other calls wait for one long synchronization.
    if size - durableSize >= QueueLog.synchronizedBytes { try synchronize() }
    for record in written { ledger.apply(record, from: .decision) }
    ledger.commit()
  }

  /// Rewrites a record, with its payload if it has one.
  private func rewrite(_ record: QueueRecord, into buffer: inout FrameBuffer) throws(FileError) -> QueueRecord {
    guard case .put(var state) = record else {
      buffer.append(record)
      return record
    }
    // The stored checksum is preserved, so that a damaged payload is still detected.
    let (checksum, payload) = try files.readStored(state.item.place)
    state.item.place = buffer.append(state, payload: payload, checksum: checksum)
    state.item.stateSegment = state.item.place.segment
    return .put(state)
  }

  // MARK: Choosing segments

  /// Returns the segments whose live data is worth rewriting.
  private func targets(_ ledger: QueueLedger) -> Set<UInt32> {
    reserve.isSpent ? targetsOnFullDisk(ledger) : targetsWhereLogIsLong(ledger)
  }

  /// Returns the oldest segments if more than half of the log is dead data, or if there are many small segments.
  ///
  /// Several small segments are chosen together, since removing one adds another.
  private func targetsWhereLogIsLong(_ ledger: QueueLedger) -> Set<UInt32> {
    let size = neededSize
    guard
      size > 2 * Int64(ledger.uses.totalCost) + 2 * folder.segmentSize
        || segmentCount > 2 * (Int(size / folder.segmentSize) + ledger.uses.totalIDBytes / reserve.idLimit) + 16
    else { return [] }
    var targets: Set<UInt32> = []
    var sum: Int64 = 0
    for (number, length) in olderSizes.sorted(by: { $0.key < $1.key }) where !unreadable.contains(number) {
      guard sum == 0 || sum + length <= folder.segmentSize else { break }
      targets.insert(number)
      sum += length
    }
    return targets
  }

  /// Returns as many segments as a part of the spent reserve can clean, if that frees more space than it takes.
  private func targetsOnFullDisk(_ ledger: QueueLedger) -> Set<UInt32> {
    let allowance = min(reserve.size, max(reserve.budget, 0)) / 4
    var targets: Set<UInt32> = []
    var (freed, cost): (Int64, Int64) = (0, 0)
    let candidates = olderSizes.filter { !unreadable.contains($0.key) }.map { number, size in
      // Removed items usually take few bytes to record.
      (number: number, size: size, cost: Int64(ledger.uses[number].cost) + 256)
    }
    // Segments that free the most space for their cost come first.
    for candidate in candidates.sorted(by: { $0.cost * $1.size < $1.cost * $0.size }) {
      guard cost + candidate.cost <= allowance else { break }
      targets.insert(candidate.number)
      freed += candidate.size
      cost += candidate.cost
    }
    // The freed space must exceed the cost by a margin, so that cleaning comes to an end.
    return freed > cost + cost / 4 + reserve.segmentLimit / 2 ? targets : []
  }
}

/// Disk space kept for the case that the disk is full: a file that is removed when the removal of items must be
/// written.
///
/// While the reserve is spent, nothing can be enqueued. The remaining space is for leases, acknowledgements and the
/// like, until enough segments have been removed.
struct SpaceReserve: Sendable {
  private enum State: Sendable {
    /// The file was not looked for yet.
    case unknown
    case available
    case spent
    /// The file cannot be created, for reasons other than a full disk.
    case absent
  }

  /// The size of the file, in bytes.
  let size: Int64
  private let path: String
  private let fileSystem: any StoreFileSystem
  private var state = State.unknown

  /// The approximate number of bytes that can still be written while the reserve is spent.
  private(set) var budget: Int64 = 0
  /// The first segment that takes its space from the spent reserve.
  private(set) var firstSegment: UInt32 = 0
  /// The part of the budget kept for cleaning while the reserve is spent, in bytes.
  private var floor: Int64 = 0
  /// The time of the last failed attempt to restore the file, in microseconds.
  private var lastTry: Int64?

  /// The minimum time, in microseconds, between attempts to restore the file if the queue itself has freed no space.
  static let pause: Int64 = 1_000_000

  /// Random bytes, which no file system compresses.
  ///
  /// At most this many free bytes may be overlooked.
  private static let filling: [UInt8] = (0..<512).flatMap { _ in
    withUnsafeBytes(of: UInt64.random(in: .min ... .max)) { Array($0) }
  }

  /// Creates the reserve of a queue.
  ///
  /// - Parameter folder: The folder of the queue. The reserve takes a quarter of a segment, but at least 64 KiB and at
  ///   most 1 MiB.
  init(in folder: QueueFolder) {
    size = min(max(folder.segmentSize / 4, 64 << 10), 1 << 20)
    path = folder.reservePath
    fileSystem = folder.fileSystem
  }

  /// A Boolean value that indicates whether the file was removed and not restored.
  var isSpent: Bool { state == .spent }

  /// A Boolean value that indicates whether the file exists and can be removed.
  var isAvailable: Bool { state == .available }

  /// A Boolean value that indicates whether items may be leased.
  ///
  /// Below the floor, the remaining space is for items that are already leased, and for cleaning.
  var mayLease: Bool { !isSpent || budget >= floor }

  /// The maximum number of items whose last record takes space from the spent reserve.
  ///
  /// The limit is low enough that rewriting them always frees space.
  var stateLimit: Int { Int(clamping: max(size, budget) / 8 / 48) }

  /// The maximum size of the ids of a segment's items, in bytes.
  ///
  /// Remembering all of them, and leasing the items, then leaves half of the reserve.
  var idLimit: Int { Int(size / 4) }

  /// The size at which the log rolls over to a new segment while the reserve is spent, in bytes.
  var segmentLimit: Int64 { size / 8 }

  /// Creates the file if it is missing.
  ///
  /// - Parameters:
  ///   - existing: The attributes whose permissions and owner the file gets.
  ///   - now: The time, in microseconds.
  ///   - segment: The number of the current segment.
  /// - Throws: `FileError` for any reason other than a full disk. If the disk is full, the reserve counts as spent.
  mutating func make(like existing: FileAttributes, at now: Int64, in segment: UInt32) throws(FileError) {
    guard state != .available, state != .absent else { return }
    if state == .spent, budget < 2 * size, let lastTry, now < lastTry.addingSaturating(SpaceReserve.pause) { return }
    lastTry = now
    if let found = try fileSystem.attributes(at: path), found.kind == .file, found.size >= size {
      state = .available
      return
    }
    var written: Int64 = 0
    do throws(FileError) {
      try write(like: existing, &written)
      state = .available
    } catch {
      // The original error matters more than a failure to clean up.
      try? fileSystem.removeFile(at: path)
      guard error.isOutOfRoom else {
        // A limit on file sizes, for example, does not mean that the disk is full.
        guard error.code(during: .apply) == .full else { throw error }
        state = .absent
        return
      }
      if state != .spent { firstSegment = segment + 1 }
      state = .spent
      budget = written
      floor = written / 4
    }
  }

  private func write(like existing: FileAttributes, _ written: inout Int64) throws(FileError) {
    let file = try fileSystem.open(path, .createIfMissing)
    defer { withExtendedLifetime(file) {} }
    try file.adopt(existing)
    while written < size {
      let bytes = Array(SpaceReserve.filling.prefix(Int(size - written)))
      try file.writeAll(bytes, at: written)
      written += Int64(bytes.count)
    }
    try file.close()
  }

  /// Removes the file to free its space.
  ///
  /// - Parameter segment: The number of the current segment.
  /// - Throws: `FileError`.
  mutating func release(in segment: UInt32) throws(FileError) {
    guard state == .available else { return }
    try fileSystem.removeFile(at: path)
    state = .spent
    firstSegment = segment + 1
    floor = size / 4
    budget = size
    lastTry = nil
    // Some file systems free the space only after the removal is durable.
    try fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
  }

  /// Records that bytes were written.
  mutating func spend(_ bytes: Int64) {
    if isSpent { budget -= min(bytes, max(budget, 0)) }
  }

  /// Records that bytes were freed.
  mutating func gain(_ bytes: Int64) {
    if isSpent { budget = budget.addingSaturating(bytes) }
  }
}
