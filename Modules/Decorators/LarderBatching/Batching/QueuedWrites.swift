public import Larder

/// What is done to queued writes that depends on the type of their values.
///
/// It is made where that type is known, and the closures with it: they are specialized, however they are called. In
/// generic code each touch of a change looks up types, and thousands of writes have to go by one after the other.
@usableFromInline
struct QueuedWrites<Value: Sendable>: Sendable {
  /// Checks the keys of a batch, and makes a call that writes it.
  let makeCall: @Sendable (_ batch: ChangeBatch<Value>) throws -> QueuedCall

  /// The batches of several callers as one, in order; that of a single one as it is.
  ///
  /// Their calls were made here, and they wait.
  let join: @Sendable (_ callers: ArraySlice<QueuedCaller>) -> ChangeBatch<Value>

  /// Makes the closures.
  ///
  /// - Parameters:
  ///   - checks: What the base says of itself.
  ///   - bounds: By which the size of a batch is counted.
  @inlinable
  init(checks: StoreInformation, bounds: BatchBounds<Value>) {
    let maximumKeyLength = checks.maximumKeyLength
    self.init { batch in
      // Through a pointer, so that no change is copied, and its value not retained.
      try batch.changes.withUnsafeBufferPointer { changes in
        for index in changes.indices {
          // The information is copied to be asked, which costs more than the question.
          guard let key = changes[index].key, !(1...maximumKeyLength).contains(key.count) else { continue }
          try checks.check(key, for: .apply)
        }
      }
      return QueuedWrite(batch, size: bounds.size(of: batch))
    } join: { callers in
      var changes: [Change<Value>] = []
      if callers.count > 1 { changes.reserveCapacity(callers.count) }
      for caller in callers {
        // The caller waits, and keeps its call.
        caller.call._withUnsafeGuaranteedRef { call in
          let more = unsafeDowncast(call, to: QueuedWrite<Value>.self).batch.changes
          // Most write one thing, which is copied faster than as an array; a single array need not be copied at all.
          if callers.count == 1 {
            changes = more
          } else if more.count == 1 {
            changes.append(more[0])
          } else {
            changes.append(contentsOf: more)
          }
        }
      }
      return ChangeBatch(changes)
    }
  }

  @usableFromInline
  init(
    makeCall: @escaping @Sendable (_ batch: ChangeBatch<Value>) throws -> QueuedCall,
    join: @escaping @Sendable (_ callers: ArraySlice<QueuedCaller>) -> ChangeBatch<Value>
  ) {
    self.makeCall = makeCall
    self.join = join
  }
}
