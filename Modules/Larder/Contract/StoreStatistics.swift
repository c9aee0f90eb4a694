/// The size of a store.
public struct StoreStatistics: Sendable, Hashable {
  /// The number of entries.
  public var entryCount: Int

  /// The bytes that the store takes on disk, or `nil` where it has none.
  public var bytesOnDisk: Int64?

  /// What else the store has to tell, by name, in the order in which it is shown.
  ///
  /// Names are in lower camel case and end in the unit where there is one, like `journalBytes`.
  public var details: [Detail]

  /// A further figure of a store.
  public struct Detail: Sendable, Hashable {
    /// What the figure is, in lower camel case.
    public var name: String

    /// The figure.
    public var value: Int64

    /// Makes a figure.
    ///
    /// - Parameters:
    ///   - name: What it is, in lower camel case, ending in the unit where there is one.
    ///   - value: The figure.
    public init(name: String, value: Int64) {
      self.name = name
      self.value = value
    }
  }

  /// Makes statistics.
  ///
  /// - Parameters:
  ///   - entryCount: The number of entries.
  ///   - bytesOnDisk: The bytes on disk; `nil`, the default, where there is no file.
  ///   - details: What else there is to tell; nothing unless given.
  public init(entryCount: Int, bytesOnDisk: Int64? = nil, details: [Detail] = []) {
    self.entryCount = entryCount
    self.bytesOnDisk = bytesOnDisk
    self.details = details
  }
}
