/// Keeps the keyed containers that were handed out, so that the next value of a type gets the same ones.
///
/// To make one takes a memory allocation and several searches of the Swift runtime's, as long as to write a few fields.
///
/// `KeyedEncodingContainer` and `KeyedDecodingContainer` are structs around one object. The object is used again only when
/// nobody else holds it, so a container that a type has kept never becomes that of another value.
struct ContainerCache: ~Copyable {
  private struct Entry {
    /// The type of the keys.
    var type: ObjectIdentifier?
    /// The level.
    var index = 0
    /// What the container takes for the number of its level.
    var id = 0
    var object: AnyObject?
  }

  private static var count: Int { 16 }

  private let entries: UnsafeMutablePointer<Entry>

  init() {
    entries = .allocate(capacity: ContainerCache.count)
    entries.initialize(repeating: Entry(), count: ContainerCache.count)
  }

  deinit {
    entries.deinitialize(count: ContainerCache.count)
    entries.deallocate()
  }

  @inline(__always)
  private func entry(_ type: ObjectIdentifier, _ index: Int) -> UnsafeMutablePointer<Entry> {
    entries + ((Int(bitPattern: type) &>> 4 ^ index) & (ContainerCache.count - 1))
  }

  /// The object of a container for a level that nobody uses any more, and its number.
  ///
  /// The object is not retained: what it is made into is, once.
  @inline(__always)
  func object(keyedBy key: Any.Type, at index: Int) -> (object: Unmanaged<AnyObject>, id: Int)? {
    let key = ObjectIdentifier(key)
    let entry = entry(key, index)
    // Not by a copy of the entry, which would hold the object too.
    guard entry.pointee.type == key, entry.pointee.index == index, isKnownUniquelyReferenced(&entry.pointee.object),
      let object = entry.pointee.object
    else { return nil }
    return (Unmanaged.passUnretained(object), entry.pointee.id)
  }

  /// Keeps a container, if it is laid out as is thought.
  func keep<Container>(_ container: Container, keyedBy key: Any.Type, at index: Int, id: Int) {
    guard let object = ContainerCache.object(of: container) else { return }
    let key = ObjectIdentifier(key)
    entry(key, index).pointee = Entry(type: key, index: index, id: id, object: object)
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
