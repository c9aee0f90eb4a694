import Larder
import TestSupport

/// A decorator that only forwards: what every decorator must at least be.
struct ForwardingStore<Base: DataStore>: ForwardingDecorator {
  typealias Value = Base.Value

  let base: Base
}
