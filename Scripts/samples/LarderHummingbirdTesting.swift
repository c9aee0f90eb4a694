import Hummingbird
import Testing

var suite: PersistDriverSuite { standIn() }
