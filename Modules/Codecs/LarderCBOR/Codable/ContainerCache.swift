/// Keeps the keyed containers that were handed out, so that the next value of a type gets the same ones.
///
/// To make one takes a memory allocation and several searches of the Swift runtime's, as long as to write a few fields.
///
/// `KeyedEncodingContainer` and `KeyedDecodingContainer` are structs around one object. The object is used again only when
/// nobody else holds it, so a container that a type has kept never becomes that of another value.
struct ContainerCache: ~Copyable {
  /// A container that nobody uses any more.
  struct Unused {
    /// What it takes for the number of its level.
    let id: Int
    fileprivate let memory: UnsafeRawPointer
    fileprivate let copier: AnyClass

    /// The container, for somebody to use.
    ///
    /// - Parameter type: The type of containers that the cache keeps, with the type of keys that was asked for.
    @inline(__always)
    func container<Container>(_ type: Container.Type) -> Container {
      unsafeBitCast(copier, to: ContainerCopier<Container>.Type.self).copy(memory)
    }
  }

  private struct Entry {
    /// The type of the keys.
    var type: ObjectIdentifier?
    /// The level.
    var index = 0
    /// What the container takes for the number of its level.
    var id = 0
    var object: AnyObject?
    /// The `ContainerCopier` of its type.
    var copier: AnyClass?
  }

  private static var count: Int { 16 }

  /// `nil` until a container is kept.
  private var entries: UnsafeMutablePointer<Entry>?

  init() {}

  deinit {
    entries?.deinitialize(count: ContainerCache.count)
    entries?.deallocate()
  }

  @inline(__always)
  private static func place(_ type: ObjectIdentifier, _ index: Int) -> Int {
    (Int(bitPattern: type) &>> 4 ^ index) & (count - 1)
  }

  /// The container of a level, where nobody uses it any more.
  @inline(__always)
  func unused(keyedBy key: Any.Type, at index: Int) -> Unused? {
    let key = ObjectIdentifier(key)
    guard let entries else { return nil }
    let entry = entries + ContainerCache.place(key, index)
    // Not by a copy of the entry, which would hold the object too.
    guard entry.pointee.type == key, entry.pointee.index == index, isKnownUniquelyReferenced(&entry.pointee.object),
      let copier = entry.pointee.copier
    else { return nil }
    // The memory is that of the entry itself, so the pointer is good after the call.
    let memory = withUnsafePointer(to: &entry.pointee.object) { UnsafeRawPointer($0) }
    return Unused(id: entry.pointee.id, memory: memory, copier: copier)
  }

  /// Keeps a container, if it is laid out as is thought.
  mutating func keep<Container>(_ container: Container, keyedBy key: Any.Type, at index: Int, id: Int) {
    guard let object = ContainerCache.object(of: container) else { return }
    let key = ObjectIdentifier(key)
    if entries == nil {
      entries = .allocate(capacity: ContainerCache.count)
      entries?.initialize(repeating: Entry(), count: ContainerCache.count)
    }
    entries?[ContainerCache.place(key, index)] = Entry(
      type: key, index: index, id: id, object: object, copier: ContainerCopier<Container>.self)
  }

  /// The object of a container, where that is all that the container has.
  private static func object<Container>(of container: Container) -> AnyObject? {
    let children = Array(Mirror(reflecting: container).children)
    guard children.count == 1, let value = children.first?.value, type(of: value) is AnyClass,
      MemoryLayout<Container>.size == MemoryLayout<UInt>.size
    else { return nil }
    let object = value as AnyObject
    let bits = unsafeBitCast(container, to: UInt.self)
    return UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()) == bits ? object : nil
  }
}
