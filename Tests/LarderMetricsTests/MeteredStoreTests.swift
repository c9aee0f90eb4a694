#if Metrics
import Testing
#endif
