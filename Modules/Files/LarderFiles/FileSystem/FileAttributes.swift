/// What the file system says of a file.
public struct FileAttributes: Sendable, Hashable {
  /// The kinds of thing that a path can stand for.
  public enum Kind: Sendable, Hashable {
    /// A regular file.
    case file
    /// A directory.
    case directory
    /// A device, a socket, and so on.
    case other
  }

  /// What kind of thing it is.
  public var kind: Kind

  /// The bytes of its content.
  public var size: Int64

  /// When the content was last changed, in nanoseconds since 1 January 1970, UTC.
  public var modificationTime: Int64

  /// The permission bits, like 0o600.
  public var permissions: UInt32

  /// How many names (hard links) the file has.
  public var linkCount: Int

  /// The user and the group that the file belongs to.
  public var owner: Owner

  /// The device and the number of the file on it: together they tell whether two files are one.
  public var identity: Identity

  /// The user and the group that a file belongs to.
  public struct Owner: Sendable, Hashable {
    /// The number of the user.
    public var user: UInt32

    /// The number of the group.
    public var group: UInt32

    /// Creates an owner.
    ///
    /// - Parameters:
    ///   - user: The number of the user.
    ///   - group: The number of the group.
    public init(user: UInt32, group: UInt32) {
      self.user = user
      self.group = group
    }
  }

  /// The device and the number of a file.
  public struct Identity: Sendable, Hashable {
    /// The device.
    public var device: UInt64

    /// The number of the file on the device.
    public var inode: UInt64

    /// Makes an identity.
    public init(device: UInt64, inode: UInt64) {
      self.device = device
      self.inode = inode
    }
  }

  /// Makes attributes.
  public init(
    kind: Kind, size: Int64, modificationTime: Int64, permissions: UInt32, owner: Owner, linkCount: Int,
    identity: Identity
  ) {
    self.kind = kind
    self.size = size
    self.modificationTime = modificationTime
    self.permissions = permissions
    self.owner = owner
    self.linkCount = linkCount
    self.identity = identity
  }
}
