#if Crypto
import Crypto
public import Foundation
import Larder
import Synchronization

/// The keys that encrypt and decrypt values, one of which is primary and encrypts new values.
///
/// ```swift
/// let ring = try await KeyRing.open(in: .file("/var/lib/app/keys.json"), createsIfMissing: true)
/// if ring.needsRotation { try await ring.rotate() }
/// ```
///
/// A ``KeySource`` keeps the ring at rest as a JWK Set (RFC 7517). Every change is saved there before the ring uses a
/// new key. If another process has changed the ring at rest in the meantime, the change is made again on top of that.
///
/// ## Rotation
///
/// After ``rotate()``, new values are encrypted with a new key, and existing values stay readable with theirs. If
/// several processes share a ring, a process cannot read values under a key that another one has added until it calls
/// ``refresh()``. Then use two steps: call ``addKey()``, let every process call ``refresh()`` or restart, and then call
/// ``promote(_:)``.
///
/// ## Restored and exchanged rings
///
/// A ring at rest that lacks keys of this ring replaces it only if another process has removed them, which the number of
/// its generation shows. An older copy, for example from a backup, and another ring are refused with `changed`. The ring
/// keeps its keys, reads and writes continue, and ``save()`` or ``save(to:)`` saves the keys, of which this process may have
/// the only copy.
///
/// Reading a value never loads the ring again, because a codec cannot wait. If a read throws `keyUnavailable`, call
/// ``refresh()`` and read again.
///
/// ## Limits
///
/// A key encrypts at most 2^32 values, because nonces are random (NIST SP 800-38D, section 8.3). Then encoding throws
/// ``KeyRingError/Code/full``. The ring counts the values since it was opened, so ``needsRotation`` is true from half of
/// that on. If several processes use a key, or restart often, add up their counts yourself.
///
/// The description and the mirror of a ring show the identifiers of its keys and never a key.
public final class KeyRing: Sendable {
  /// The age from which a primary key should be replaced: 365 days.
  public static let rotationAge: Duration = .seconds(365 * 24 * 60 * 60)

  /// The number of encrypted values after which to replace a primary key: 2^31, half of the maximum.
  public static let rotationSealCount: UInt64 = 1 << 31

  /// The number of times that a change is made again after another process has changed the ring at rest.
  private static let maximumAttempts = 32

  private let source: any KeySource
  private let now: @Sendable () -> Date
  private let current: Locked<RingSnapshot>
  /// The last change or refresh, which the next one waits for.
  private let lastChange = Locked<Task<Void, Never>?>(nil)

  private init(_ document: RingDocument, source: any KeySource, now: @escaping @Sendable () -> Date) {
    self.source = source
    self.now = now
    current = Locked(KeyRing.snapshot(of: document, after: nil))
  }

  /// Opens the ring in a source.
  ///
  /// - Parameters:
  ///   - source: The place of the keys.
  ///   - createsIfMissing: A Boolean value that indicates whether to create a ring with one new key if the source knows
  ///     that it has none. Defaults to `false`, because a new ring cannot read existing values.
  ///   - now: Returns the current time, for the creation time and the age of keys. Defaults to the system's clock.
  /// - Throws: ``KeyRingError``: `notFound` if the source has no ring; `corrupted` if its content is not a ring; the
  ///   errors of the source.
  public static func open(
    in source: some KeySource, createsIfMissing: Bool = false, now: @escaping @Sendable () -> Date = { Date.now }
  ) async throws -> KeyRing {
    let document = try await saving(in: source) { previous in
      if let previous { return (try RingDocument(previous), false) }
      guard createsIfMissing else {
        throw KeyRingError(
          .notFound,
          message:
            "the key source has no key ring; if values were encrypted with one, restore it from a copy, and for a "
            + "first start pass createsIfMissing: true")
      }
      let key = newKey(at: now())
      return (RingDocument([key], primary: key.id, generation: 1), true)
    }
    return KeyRing(document, source: source, now: now)
  }

  /// The keys, oldest first.
  public var keys: [Key] {
    let snapshot = snapshot
    return snapshot.keys.map { key in
      Key(
        id: key.id, created: Date(timeIntervalSince1970: Double(key.created)), isPrimary: key === snapshot.primary,
        sealCount: key.sealCount.load(ordering: .relaxed))
    }
  }

  /// The identifier of the key that encrypts new values.
  public var primary: KeyID { snapshot.primary.id }

  /// A Boolean value that indicates whether the primary key should be replaced with ``rotate()``.
  ///
  /// This is the case after ``rotationSealCount`` values since the ring was opened, or ``rotationAge`` after the key was
  /// created.
  public var needsRotation: Bool {
    let primary = snapshot.primary
    let age = now().timeIntervalSince1970 - Double(primary.created)
    return primary.sealCount.load(ordering: .relaxed) >= KeyRing.rotationSealCount
      || age >= Double(KeyRing.rotationAge.components.seconds)
  }

  /// The keys at this moment.
  var snapshot: RingSnapshot { current.withLock { $0 } }

  // MARK: Changes

  /// Adds a new key that decrypts values but does not encrypt new ones yet.
  ///
  /// ```swift
  /// let id = try await ring.addKey()
  /// // When all processes have refreshed their rings:
  /// try await ring.promote(id)
  /// ```
  ///
  /// - Returns: The identifier of the new key.
  /// - Throws: ``KeyRingError``: `changed` if the source has an older copy or another ring, or other processes keep
  ///   changing the ring; `full` if the ring at rest would
  ///   exceed 1 MiB; `readOnly`; the errors of the source. Then the ring is as before, and after `ioFailed` the source
  ///   may have the new key.
  @discardableResult
  public func addKey() async throws -> KeyID {
    let key = KeyRing.newKey(at: now())
    try await change { $0.keys.append(RingDocument.Key(ringKey: key)) }
    return key.id
  }

  /// Adds the keys of another ring that this ring does not have, for example those of a backup.
  ///
  /// They decrypt values and do not encrypt new ones.
  ///
  /// ```swift
  /// let backup = try await KeyRing.open(in: .passwordFile("recovery.jwe", password: password))
  /// try await ring.addKeys(from: backup)
  /// ```
  ///
  /// - Parameter other: The ring with the keys.
  /// - Returns: The identifiers of the added keys, or an empty array.
  /// - Throws: The errors of ``addKey()``.
  @discardableResult
  public func addKeys(from other: KeyRing) async throws -> [KeyID] {
    let keys = other.snapshot.keys.map { RingKey($0.key, created: $0.created) }
    let added = Locked<[KeyID]>([])
    try await change { document in
      let ids = document.add(missing: keys)
      added.withLock { $0 = ids }
    }
    return added.withLock { $0 }
  }

  /// Promotes a key of the ring to the primary key that encrypts new values.
  ///
  /// - Parameter id: The identifier of the key. If it is the primary one already, this is a no-op.
  /// - Throws: ``KeyRingError``: `invalidArgument` if the ring at rest does not have the key; the errors of
  ///   ``addKey()``.
  public func promote(_ id: KeyID) async throws {
    try await change { document in
      try KeyRing.check(document, has: id)
      document.primary = id
    }
  }

  /// Adds a new key and makes it the primary one, in one step.
  ///
  /// Use it if no other process shares the ring, or if the others may be unable to read new values until they call
  /// ``refresh()``.
  ///
  /// ```swift
  /// if ring.needsRotation {
  ///   try await ring.rotate()
  ///   let outcome = try await users.reencrypt()
  ///   print(outcome.examinedCount, outcome.failureCount)
  /// }
  /// ```
  ///
  /// - Returns: The identifier of the new key.
  /// - Throws: The errors of ``addKey()``.
  @discardableResult
  public func rotate() async throws -> KeyID {
    let key = KeyRing.newKey(at: now())
    try await change { document in
      document.keys.append(RingDocument.Key(ringKey: key))
      document.primary = key.id
    }
    return key.id
  }

  /// Permanently removes a key.
  ///
  /// Values that are encrypted with it can never be read again.
  ///
  /// A ring does not know which stores use it. Encrypt the values of every store anew first.
  ///
  /// ```swift
  /// for key in ring.keys where !key.isPrimary { try await ring.remove(key.id) }
  /// ```
  ///
  /// - Parameter id: The identifier of the key. It must not be the primary one.
  /// - Throws: ``KeyRingError``: `invalidArgument` if the ring at rest does not have the key, or if it is the primary
  ///   one there or of this ring; the errors of ``addKey()``.
  public func remove(_ id: KeyID) async throws {
    try await change { [self] document in
      try KeyRing.check(document, has: id)
      guard document.primary != id else {
        throw KeyRingError(
          .invalidArgument, message: "the key \(id) is the primary key; call rotate() or promote(_:) first")
      }
      guard primary != id else {
        throw KeyRingError(
          .invalidArgument,
          message: "this process still encrypts values with the key \(id); call refresh(), and then encrypt the values "
            + "of every store anew")
      }
      document.keys.removeAll { $0.ringKey.id == id }
    }
  }

  /// Loads the keys from the source, to learn of the changes of other processes.
  ///
  /// The call waits for the changes of the ring that have started, and for the source, even if its task is cancelled.
  ///
  /// ```swift
  /// try await ring.refresh()  // another process has rotated the ring
  /// ```
  ///
  /// - Throws: ``KeyRingError``: `changed` if the source has an older copy or another ring; `notFound` if it has no ring
  ///   any more; `corrupted`; the errors of the source. Then the ring keeps the keys that it has.
  public func refresh() async throws {
    try await inSequence { ring in
      let document = try await KeyRing.document(ring.source.load())
      try ring.snapshot.checkReplacement(document)
      ring.use(document)
    }
  }

  // MARK: Saving

  /// Saves the keys of this ring in its source again, for example after an older copy was restored there.
  ///
  /// Keys that only the source has are kept. The primary key of this ring becomes the primary one.
  ///
  /// - Throws: ``KeyRingError``: `changed` if the source has another ring, with which this one has no key in common, or
  ///   other processes keep changing it; `full`; `readOnly`; the errors of the source.
  public func save() async throws {
    try await inSequence { ring in
      ring.use(try await ring.save(to: ring.source, of: ring.snapshot))
    }
  }

  /// Saves the keys of this ring in another place, for example as a recovery copy under a password.
  ///
  /// ```swift
  /// try await ring.save(to: .passwordFile("recovery.jwe", password: password))
  /// ```
  ///
  /// If there is a copy of the ring already, keys that only the copy has are kept. This ring stays with its own source.
  ///
  /// - Parameter other: The place for the keys.
  /// - Throws: The errors of ``save()``.
  public func save(to other: some KeySource) async throws {
    try await inSequence { ring in
      _ = try await ring.save(to: other, of: ring.snapshot)
    }
  }

  /// Saves keys in a source, and returns the ring that the source then has.
  private func save(to source: any KeySource, of snapshot: RingSnapshot) async throws -> RingDocument {
    try await KeyRing.saving(in: source) { previous in
      var document: RingDocument
      if let previous {
        document = try RingDocument(previous)
        guard snapshot.keys.contains(where: { document.has($0.id) }) else {
          throw KeyRingError(
            .changed, message: "the key source has another key ring, which is kept; save the keys in another place")
        }
        document.add(missing: snapshot.keys)
        document.primary = snapshot.primary.id
        document.generation = max(document.generation, snapshot.generation)
      } else {
        document = RingDocument(snapshot.keys, primary: snapshot.primary.id, generation: snapshot.generation)
      }
      document.countGeneration()
      return (document, true)
    }
  }

  private static func check(_ document: RingDocument, has id: KeyID) throws(KeyRingError) {
    guard document.has(id) else {
      throw KeyRingError(.invalidArgument, message: "the key ring does not have the key \(id)")
    }
  }

  private static func newKey(at date: Date) -> RingKey {
    let seconds = date.timeIntervalSince1970.rounded(.down)
    return RingKey(SymmetricKey(size: .bits256), created: Int64(exactly: seconds) ?? 0)
  }

  /// Saves a document that is made of the ring at rest, again if another process has changed the ring in the meantime.
  ///
  /// - Parameters:
  ///   - source: The place of the keys.
  ///   - makeDocument: A closure that receives the ring at rest, and returns the document and whether it must be saved.
  /// - Returns: The document that the source then has.
  private static func saving(
    in source: any KeySource, _ makeDocument: (_ previous: [UInt8]?) throws -> (document: RingDocument, mustSave: Bool)
  ) async throws -> RingDocument {
    for _ in 0..<maximumAttempts {
      let previous = try await source.load()
      let (document, mustSave) = try makeDocument(previous)
      do {
        if mustSave { try await source.save(document.bytes(), replacing: previous) }
        return document
      } catch KeyRingError.Code.changed {
        continue
      }
    }
    throw KeyRingError(
      .changed, message: "the key ring was changed \(maximumAttempts) times by something else; try again later")
  }

  /// Changes the ring at rest, and uses the result.
  private func change(_ body: @escaping @Sendable (inout RingDocument) throws -> Void) async throws {
    try await inSequence { ring in
      ring.use(
        try await KeyRing.saving(in: ring.source) { previous in
          var document = try KeyRing.document(previous)
          try ring.snapshot.checkReplacement(document)
          try body(&document)
          document.countGeneration()
          return (document, true)
        })
    }
  }

  /// Returns the document of the ring at rest.
  ///
  /// - Throws: ``KeyRingError``: `notFound` if there isn't one; `corrupted`.
  private static func document(_ content: [UInt8]?) throws -> RingDocument {
    guard let content else {
      throw KeyRingError(
        .notFound,
        message: "the key source does not have the key ring any more; call save() or save(to:) to save the keys")
    }
    return try RingDocument(content)
  }

  /// Runs a closure after all previous changes, so an older state never replaces a newer one.
  ///
  /// A change that has started completes, even if the caller is cancelled.
  private func inSequence(_ body: @escaping @Sendable (KeyRing) async throws -> Void) async throws {
    try Task.checkCancellation()
    let change = lastChange.withLock { last in
      let previous = last
      let change = Task {
        await previous?.value
        try await body(self)
      }
      last = Task { _ = await change.result }
      return change
    }
    try await change.value
  }

  /// Publishes the keys of a document, in which keys that the ring already has keep their counts.
  private func use(_ document: RingDocument) {
    let previous = snapshot
    let next = KeyRing.snapshot(of: document, after: previous)
    current.withLock { $0 = next }
  }

  private static func snapshot(of document: RingDocument, after previous: RingSnapshot?) -> RingSnapshot {
    let keys = document.keys.map { key in
      guard let known = previous?[key.ringKey.id], known.key == key.ringKey.key else { return key.ringKey }
      return known
    }
    // A document always has its primary key.
    let primary = keys.first { $0.id == document.primary } ?? keys[0]
    return RingSnapshot(keys: keys, primary: primary, generation: document.generation)
  }
}

extension KeyRing: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The identifiers of the keys.
  public var description: String {
    let snapshot = snapshot
    return
      "KeyRing(primary: \(snapshot.primary.id), keys: [\(snapshot.keys.map(\.id.description).joined(separator: ", "))])"
  }

  /// The identifiers of the keys.
  public var debugDescription: String { description }

  /// A mirror of the identifiers of the keys.
  public var customMirror: Mirror {
    Mirror(
      self, children: ["primary": "\(primary)", "keys": snapshot.keys.map(\.id.description)], displayStyle: .class)
  }
}
#endif
