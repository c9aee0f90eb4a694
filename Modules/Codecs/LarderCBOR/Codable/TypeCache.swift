/// Remembers something about types, because to find out takes long.
///
/// Of types that share a place the last one stays.
struct TypeCache<Fact>: ~Copyable {
  private struct Entry {
    let type: ObjectIdentifier
    let fact: Fact
  }

  private static var count: Int { 256 }

  /// `nil` until something is known.
  private var entries: UnsafeMutablePointer<Entry?>?

  init() {}

  deinit {
    entries?.deinitialize(count: TypeCache.count)
    entries?.deallocate()
  }

  private mutating func allocate() -> UnsafeMutablePointer<Entry?> {
    let memory = UnsafeMutablePointer<Entry?>.allocate(capacity: TypeCache.count)
    memory.initialize(repeating: nil, count: TypeCache.count)
    entries = memory
    return memory
  }

  /// What is known of a type; it is found out if it is not yet.
  @inline(__always)
  mutating func fact(of type: Any.Type, _ find: () -> Fact) -> Fact {
    let type = ObjectIdentifier(type)
    let address = Int(bitPattern: type)
    let entry = (entries ?? allocate()) + ((address &>> 4 ^ address &>> 12) & (TypeCache.count - 1))
    if let known = entry.pointee, known.type == type { return known.fact }
    let fact = find()
    entry.pointee = Entry(type: type, fact: fact)
    return fact
  }
}
