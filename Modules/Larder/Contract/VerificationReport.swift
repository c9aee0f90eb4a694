/// What the verification of a store found.
public struct VerificationReport: Sendable, Hashable {
  /// A place where the store is damaged.
  public struct Finding: Sendable, Hashable {
    /// The key of the damaged entry, where it is known.
    public var key: StoreKey?

    /// Where the damage is, for people to read: a file with line and column or byte, where there is one.
    public var place: String

    /// What is wrong, for people to read, without any key or value.
    public var message: String

    /// Makes a finding.
    ///
    /// - Parameters:
    ///   - key: The key of the damaged entry; `nil` where it is not known.
    ///   - place: Where the damage is.
    ///   - message: What is wrong.
    public init(key: StoreKey?, place: String, message: String) {
      self.key = key
      self.place = place
      self.message = message
    }
  }

  /// How many entries were read and checked, damaged ones included.
  public var entryCount: Int

  /// The damage, in key order where the key is known; empty where all is well.
  public var findings: [Finding]

  /// Makes a report.
  ///
  /// - Parameters:
  ///   - entryCount: How many entries were read and checked.
  ///   - findings: The damage; none unless given.
  public init(entryCount: Int, findings: [Finding] = []) {
    self.entryCount = entryCount
    self.findings = findings
  }
}
