/// What a store says of itself: its name, its limits, and what it means when a write returns.
public struct StoreInformation: Sendable {
  /// Who may have the same data open at the same time.
  public enum Sharing: Sendable, Hashable {
    /// One store object in one process; another is refused with ``StoreError/Code/locked``.
    case exclusive
    /// Any number of processes.
    case betweenProcesses
  }

  /// What the store is called in errors, reports and logs.
  public var name: String

  /// Captures the context of the current task, such as its trace; `nil` if no layer of the store needs one.
  package var callerContext: (@Sendable () -> (any CallerContext)?)?

  /// What it means that a write has returned.
  public var acknowledgement: Acknowledgement

  /// Who may have the same data open at the same time.
  public var sharing: Sharing

  /// Whether the store may write to its files.
  ///
  /// With any other access than ``StoreAccess/readWrite`` every write throws ``StoreError/Code/notPermitted``.
  public var access: StoreAccess

  /// The most bytes that a key may have: ``StoreKey/maximumLength``, less for a view that puts something before its keys.
  public var maximumKeyLength: Int

  /// The most bytes that an encoded value may have, or `nil` where only memory and disk limit it.
  public var maximumValueSize: Int?

  /// Statistics, verification, compaction and backup, where the store has them.
  ///
  /// A decorator hands on what its base has, so that it can be reached through any stack.
  public var maintenance: (any StoreMaintenance)?

  /// Describes a store.
  ///
  /// - Parameters:
  ///   - name: What the store is called in errors, reports and logs. It should name no secret.
  ///   - acknowledgement: What it means that a write has returned.
  ///   - sharing: Who may have the same data open at the same time.
  ///   - access: Whether the store may write; defaults to ``StoreAccess/readWrite``.
  ///   - maximumKeyLength: The most bytes that a key may have; ``StoreKey/maximumLength`` unless it is less.
  ///   - maximumValueSize: The most bytes that an encoded value may have; `nil`, the default, for no such limit.
  ///   - maintenance: Statistics, verification, compaction and backup; `nil`, the default, where there are none.
  public init(
    name: String,
    acknowledgement: Acknowledgement,
    sharing: Sharing,
    access: StoreAccess = .readWrite,
    maximumKeyLength: Int = StoreKey.maximumLength,
    maximumValueSize: Int? = nil,
    maintenance: (any StoreMaintenance)? = nil
  ) {
    self.name = name
    self.acknowledgement = acknowledgement
    self.sharing = sharing
    self.access = access
    self.maximumKeyLength = min(maximumKeyLength, StoreKey.maximumLength)
    self.maximumValueSize = maximumValueSize
    self.maintenance = maintenance
  }
}
