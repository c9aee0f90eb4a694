extension StoreError {
  /// What kind of failure an error is: an open set, so that code which handles some kinds goes on compiling when others
  /// are added.
  public struct Code: RawRepresentable, Sendable, Hashable {
    /// The name.
    public let rawValue: String

    /// Makes a code of a name.
    ///
    /// - Parameter rawValue: The name, in lower camel case.
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    /// A key is empty, too long, or not made of components where those are asked for.
    public static let invalidKey = Code(rawValue: "invalidKey")
    /// An argument other than a key makes no sense, such as a negative limit.
    public static let invalidArgument = Code(rawValue: "invalidArgument")
    /// A value has more bytes than the store can take.
    public static let valueTooLarge = Code(rawValue: "valueTooLarge")
    /// A value cannot be encoded.
    public static let encodingFailed = Code(rawValue: "encodingFailed")
    /// What is stored is damaged or cannot be decoded.
    public static let corrupted = Code(rawValue: "corrupted")
    /// Someone else has changed what the store has open.
    public static let conflict = Code(rawValue: "conflict")
    /// The store was closed.
    public static let closed = Code(rawValue: "closed")
    /// Another process, or another object in this one, has the store open.
    public static let locked = Code(rawValue: "locked")
    /// There is no room: the disk, the quota or the store is full.
    public static let full = Code(rawValue: "full")
    /// Reading or writing failed.
    public static let ioFailed = Code(rawValue: "ioFailed")
    /// The operating system refuses access.
    public static let notPermitted = Code(rawValue: "notPermitted")
    /// There is no such store, and creating it was not asked for.
    public static let notFound = Code(rawValue: "notFound")
    /// What is asked for cannot be done by this store, or with this file.
    public static let unsupported = Code(rawValue: "unsupported")
    /// A file is no store of this kind; it is left as it is.
    public static let unrecognizedFormat = Code(rawValue: "unrecognizedFormat")
    /// The store was written by a newer version of the format, or with another codec.
    public static let versionMismatch = Code(rawValue: "versionMismatch")
    /// It took longer than was allowed.
    public static let timedOut = Code(rawValue: "timedOut")

    /// Whether an error is a ``StoreError`` of a code, so that `catch StoreError.Code.full` works.
    public static func ~= (code: Code, error: any Error) -> Bool {
      (error as? StoreError)?.code == code
    }
  }
}

extension StoreError.Code: CustomStringConvertible {
  /// The name.
  public var description: String { rawValue }
}
